import { z } from "zod";
import { refundReasons, refundStatuses } from "../../payments/payouts/refund-views.ts";
import { amountResponse, instant } from "../contract/response-schemas.ts";
import { nextCursor } from "./merchant-response-schemas.ts";

export const refundStatus = z.enum(refundStatuses, `expected ${refundStatuses.join(", ")}`).meta({
  id: "RefundStatus",
  description:
    "pending: waits for the merchant's balance, for the treasury's inventory of the asset, or for its turn. held: screening rejects its receiver, or the token's issuer blocks it; it can only be withdrawn. processing: it is being sent. succeeded and failed are final.",
});

/** A refund, as its merchant reads it. An addition to the specification, which shows none. */
export const refundResponse = z
  .object({
    refundId: z.string(),
    paymentId: z.string().meta({ description: "The payment that is refunded." }),
    merchantId: z.string().meta({ description: "The merchant whose balance pays the refund." }),
    referenceId: z.string().nullable().meta({ description: "The referenceId of the payment." }),
    status: refundStatus,
    reason: z.enum(refundReasons).nullable().meta({
      description:
        "Why it waits (balance_short: what the merchant is owed does not cover it; inventory_short: the treasury has too little of the asset), is held (screening; receiver_blocked: the token's issuer blocks the receiver) or has failed (withdrawn: nothing was sent); null otherwise.",
    }),
    amount: amountResponse.meta({ description: "In the asset that the payment was paid in." }),
    receiver: z.string().nullable().meta({
      description: "CAIP-10 account that the money goes to: the payer's. Null in test mode if no wallet paid.",
    }),
    isRecordOnly: z.boolean().meta({
      description:
        "True when the service sends nothing: in test mode, and of a payment that the buyer paid to the merchant directly, who returns the money. Such a refund succeeds at once.",
    }),
    txId: z
      .string()
      .nullable()
      .meta({ description: "Hash of the transaction that paid it, once it is final; in test mode test: and its id." }),
    createdAt: instant,
    lastUpdatedAt: instant,
    succeededAt: instant.nullable(),
  })
  .meta({ id: "Refund", description: "Money of a payment that goes back to its payer." });

export const refundListResponse = z.object({ data: z.array(refundResponse), nextCursor });
