import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { checkPayment, writePayment } from "../../payments/lifecycle/create-payment.ts";
import type { PaymentView } from "../../payments/views.ts";
import { isStorable } from "../../runtime/clean-text.ts";
import { defineOperation, type Operation } from "../contract/operation.ts";
import { amount, optional, referenceId, unixSeconds } from "../contract/request-schemas.ts";
import { createdResponse } from "../contract/response-schemas.ts";
import { toCreatedResponse } from "../contract/responses.ts";

// A URL parser encodes characters that Postgres refuses, but the stored text is the one that was sent.
const httpsUrl = z
  .url({ protocol: /^https$/ })
  .max(2_048)
  .refine(isStorable);
const checkout = z.object({ successUrl: httpsUrl, errorUrl: httpsUrl });
/** Stands for a checkout that is missing a URL or has an invalid one. */
const UNUSABLE_CHECKOUT: z.output<typeof checkout> = { successUrl: "", errorUrl: "" };

const body = z.object({
  referenceId: optional(referenceId),
  amount,
  expiresAt: optional(unixSeconds),
  /** Never fails a creation: a missing or invalid URL turns the redirect off (specification, 4.2). */
  checkout: optional(checkout).catch(UNUSABLE_CHECKOUT),
});
type Body = z.output<typeof body>;

/** Returns the payment that a body asks for. */
function readTerms({ checkout: given, ...rest }: Body) {
  return { ...rest, checkout: given === UNUSABLE_CHECKOUT ? undefined : given };
}

/** Returns what the created payment does not have although the body asks for it. */
function listWarnings(body: Body, made: PaymentView) {
  const isShortened = body.expiresAt !== undefined && made.expiresAt < body.expiresAt;
  const dropped = "is ignored: expected successUrl and errorUrl, both https; buyers are not redirected";
  return [
    ...(body.checkout === UNUSABLE_CHECKOUT ? [{ field: "checkout", message: dropped }] : []),
    ...(isShortened ? [{ field: "expiresAt", message: "is shortened: a payment expires after 24 hours at most" }] : []),
  ];
}

/** Both paths create the same payment and return the same response. */
const define = (path: Operation["path"], name: string) =>
  defineOperation({
    method: "POST",
    path,
    name,
    summary: "Creates a payment.",
    access: "merchant",
    scope: "payments:write",
    success: 201,
    idempotency: "optional",
    response: createdResponse,
    refusals: ["merchant_not_found", "forbidden"],
    body,
    prepare: (deps, { caller, merchant, body }) =>
      checkPayment(deps, { caller, merchantId: merchant.merchantId, ...readTerms(body) }),
    claimsKey: true,
    async handle(deps, { caller, merchant, body, prepared, claim }) {
      const toBody = (payment: PaymentView) => ({
        ...toCreatedResponse(payment, deps.publicUrl),
        warnings: listWarnings(body, payment),
      });
      const toText = (payment: PaymentView) => JSON.stringify(toBody(payment));
      const args = { caller, merchantId: merchant.merchantId, ...readTerms(body) };
      const made = await writePayment(deps, args, prepared, claim && { ...claim, toText });
      return made && done(toBody(made));
    },
  });

/** POST /v1/payments and POST /v1/merchant/payment: create a payment. */
export const createOperations = [
  define("/v1/payments", "createPayment"),
  define("/v1/merchant/payment", "createMerchantPayment"),
];
