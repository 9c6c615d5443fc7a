import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { checkPayment, writePayment } from "../../payments/lifecycle/create-payment.ts";
import { parseReturnUrl } from "../../payments/lifecycle/return-url.ts";
import type { PaymentView } from "../../payments/views.ts";
import { isStorable } from "../../runtime/clean-text.ts";
import type { ApiDeps } from "../api-deps.ts";
import { defineOperation, type Operation } from "../contract/operation.ts";
import { amount, ignoredQuery, optional, referenceId, unixSeconds } from "../contract/request-schemas.ts";
import { createdResponse } from "../contract/response-schemas.ts";
import { toCreatedResponse } from "../contract/responses.ts";
import { description, metadata } from "./metadata-schemas.ts";

// A URL parser encodes characters that Postgres refuses, but the stored text is the one that was sent.
const webUrl = z
  .url({ protocol: /^https?$/ })
  .max(2_048)
  .refine(isStorable);
const checkout = z.object({ successUrl: webUrl, errorUrl: webUrl });
/** Stands for a checkout that is missing a URL or has an invalid one. */
const UNUSABLE_CHECKOUT: z.output<typeof checkout> = { successUrl: "", errorUrl: "" };

// Unknown members are ignored, with a warning: terminals and shops use published clients, which may send more than this
// service knows.
const body = z.object({
  referenceId: optional(referenceId),
  description: optional(description),
  metadata: optional(metadata),
  amount,
  expiresAt: optional(unixSeconds),
  /** Never fails a creation: a missing or invalid URL turns the redirect off (specification, 4.2). */
  checkout: optional(checkout).catch(UNUSABLE_CHECKOUT),
});
type Body = z.output<typeof body>;

/**
 * Returns true when buyers can be redirected to both URLs. To a shop on this machine without TLS they can be only where the
 * operator allows private addresses, as the local stack does.
 */
function isUsable({ validateUrl }: Pick<ApiDeps, "validateUrl">, { successUrl, errorUrl }: z.output<typeof checkout>) {
  return [successUrl, errorUrl].every(
    (text) => parseReturnUrl(text) && (/^https:/i.test(text) || validateUrl(text) === undefined),
  );
}

/** Returns the payment that a body asks for. */
function readTerms(deps: Pick<ApiDeps, "validateUrl">, { checkout: given, ...rest }: Body) {
  return { ...rest, checkout: given && isUsable(deps, given) ? given : undefined };
}

/** Returns what the created payment does not have although the request asks for it. */
function listWarnings(
  deps: Pick<ApiDeps, "validateUrl">,
  { body, unknownMembers }: { body: Body; unknownMembers: readonly string[] },
  made: PaymentView,
) {
  const isDropped = body.checkout !== undefined && !isUsable(deps, body.checkout);
  const isShortened = body.expiresAt !== undefined && made.expiresAt < body.expiresAt;
  const dropped = "is ignored: expected successUrl and errorUrl, both https; buyers are not redirected";
  return [
    ...(isDropped ? [{ field: "checkout", message: dropped }] : []),
    ...(isShortened ? [{ field: "expiresAt", message: "is shortened: a payment expires after 24 hours at most" }] : []),
    ...unknownMembers.map((field) => ({ field, message: "is ignored: is not known" })),
  ];
}

/** Both paths create the same payment and return the same response. */
const define = (path: Operation["path"], name: string, summary: string) =>
  defineOperation({
    method: "POST",
    path,
    name,
    summary,
    access: "merchant",
    scope: "payments:write",
    success: 201,
    idempotency: "optional",
    response: createdResponse,
    refusals: ["merchant_not_found", "forbidden", "chain_unavailable"],
    query: ignoredQuery,
    body,
    prepare: (deps, { caller, merchant, body }) =>
      checkPayment(deps, { caller, merchantId: merchant.merchantId, ...readTerms(deps, body) }),
    claimsKey: true,
    async handle(deps, { caller, merchant, body, unknownMembers, prepared, claim }) {
      const toBody = (payment: PaymentView) => ({
        ...toCreatedResponse(payment, deps.publicUrl),
        warnings: listWarnings(deps, { body, unknownMembers }, payment),
      });
      const toText = (payment: PaymentView) => JSON.stringify(toBody(payment));
      const args = { caller, merchantId: merchant.merchantId, ...readTerms(deps, body) };
      const made = await writePayment(deps, args, prepared, claim && { ...claim, toText });
      return made && done(toBody(made));
    },
  });

/** POST /v1/payments and POST /v1/merchant/payment: create a payment. */
export const createOperations = [
  define("/v1/payments", "createPayment", "Creates a payment. New integrations use this path."),
  define(
    "/v1/merchant/payment",
    "createMerchantPayment",
    "Creates a payment, as /v1/payments does: for terminals and shops that use this published path.",
  ),
];
