import { z } from "zod";
import { cancelPayment } from "../../payments/cancel.ts";
import { done } from "../../payments/errors.ts";
import { findPaymentDetail } from "../../payments/read.ts";
import { refundPayment } from "../../payments/refund.ts";
import { simulatePayment } from "../../payments/simulate.ts";
import { toCancelledAnswer, toDetailAnswer, toStatusAnswer } from "../answers.ts";
import { amount, noBody, optional, paymentId, text } from "../fields.ts";
import { defineOperation } from "../operation.ts";
import { cancelledAnswer, statusAnswer } from "../shapes.ts";
import { paymentDetail } from "./shapes.ts";

const params = z.object({ id: paymentId });

const get = defineOperation({
  method: "GET",
  path: "/v1/payments/:id",
  name: "getPayment",
  summary: "Gives a payment, with its payout once that has arrived.",
  access: "merchant",
  success: 200,
  params,
  answer: paymentDetail,
  refusals: ["payment_not_found"],
  async handle(deps, { caller, merchant, params }) {
    const found = await findPaymentDetail(deps, { paymentId: params.id, mode: caller.mode, merchant });
    return found.ok ? done(toDetailAnswer(found.value)) : found;
  },
});

const cancel = defineOperation({
  method: "POST",
  path: "/v1/payments/:id/cancel",
  name: "cancelPayment",
  summary: "Cancels a payment that awaits its buyer. Repeatable.",
  access: "merchant",
  success: 200,
  params,
  body: noBody,
  answer: cancelledAnswer,
  refusals: ["payment_not_found", "invalid_state"],
  async handle(deps, { caller, merchant, params }) {
    const asked = { paymentId: params.id, mode: caller.mode, merchant };
    const cancelled = await cancelPayment(deps, asked, "cancelled_by_merchant");
    return cancelled.ok ? done(toCancelledAnswer(cancelled.value)) : cancelled;
  },
});

/** POST /v1/payments/{id}/simulate: the other outcomes of test mode; a confirmed test payment succeeds by itself. */
const simulate = defineOperation({
  method: "POST",
  path: "/v1/payments/:id/simulate",
  name: "simulatePayment",
  summary: "Drives a payment of test mode to a state, to see what each outcome looks like. Test keys only.",
  access: "merchant",
  success: 200,
  params,
  body: z.object({
    status: z.enum(
      ["processing", "succeeded", "failed", "expired", "cancelled"],
      "expected processing, succeeded, failed, expired or cancelled",
    ),
  }),
  answer: statusAnswer,
  refusals: ["payment_not_found", "invalid_state", "not_sandbox_api_key"],
  async handle(deps, { caller, merchant, params, body }) {
    const asked = { paymentId: params.id, mode: caller.mode, merchant };
    const driven = await simulatePayment(deps, asked, body.status);
    return driven.ok ? done(toStatusAnswer(driven.value)) : driven;
  },
});

/**
 * POST /v1/refunds: once in full; `amount` is an addition of ours. A part needs an `Idempotency-Key`, because a repeat
 * after a lost answer would send another part; the whole can be sent back only once.
 */
const refund = defineOperation({
  method: "POST",
  path: "/v1/refunds",
  name: "createRefund",
  summary: "Sends a payment's money back to its payer: what is left of it, or a part. Nothing is moved in test mode.",
  access: "merchant",
  success: 200,
  idempotency: "optional",
  needsKey: ({ body }) => body.amount !== undefined,
  body: z.object({ paymentId: text(64).min(1, "expected a payment's id"), amount: optional(amount) }),
  answer: z.object({ paymentId: z.string(), refundId: z.string() }),
  refusals: ["payment_not_found", "payment_not_succeeded", "already_refunded"],
  async handle(deps, { caller, merchant, body }) {
    const refunded = await refundPayment(deps, { ...body, mode: caller.mode, merchant });
    return refunded;
  },
});

/** What a merchant may do with one payment beside making it. */
export const paymentOperations = [get, cancel, simulate, refund];
