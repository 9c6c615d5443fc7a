import { z } from "zod";
import { isStorable } from "../../ops/clean-text.ts";
import { checkPayment, writePayment } from "../../payments/create.ts";
import { done } from "../../payments/errors.ts";
import { toCreatedAnswer } from "../answers.ts";
import { amount, optional, referenceId, unixSeconds } from "../fields.ts";
import { defineOperation, type Operation } from "../operation.ts";
import { createdAnswer } from "../shapes.ts";

// A URL parser encodes what Postgres refuses, and the text stays as it was sent.
const httpsUrl = z
  .url({ protocol: /^https$/ })
  .max(2_048)
  .refine(isStorable);
const checkout = z.object({ successUrl: httpsUrl, errorUrl: httpsUrl });

const body = z.object({
  referenceId: optional(referenceId),
  amount,
  expiresAt: optional(unixSeconds),
  /** Never fails a creation: with a missing or unusable URL the redirect is off (specification, 4.2). */
  checkout: optional(checkout).catch(undefined),
});

/** Both families of names make the same payment and answer the same. */
const define = (path: Operation["path"], name: string) =>
  defineOperation({
    method: "POST",
    path,
    name,
    summary: "Asks a buyer for money.",
    access: "merchant",
    success: 201,
    idempotency: "optional",
    answer: createdAnswer,
    refusals: ["merchant_not_found", "forbidden"],
    body,
    prepare: (deps, { caller, merchant, body }) =>
      checkPayment(deps, { caller, merchantId: merchant.merchantId, ...body }),
    async handle(deps, { caller, merchant, body, prepared }) {
      const made = await writePayment(deps, { caller, merchantId: merchant.merchantId, ...body }, prepared);
      return done(toCreatedAnswer(made, deps.publicUrl));
    },
  });

/** POST /v1/payments and POST /v1/merchant/payment: a merchant asks for money. */
export const createOperations = [
  define("/v1/payments", "createPayment"),
  define("/v1/merchant/payment", "createMerchantPayment"),
];
