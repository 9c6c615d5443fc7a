import { z } from "zod";
import { done } from "../../payments/errors.ts";
import { listPaymentRefunds, withdrawRefund } from "../../payments/withdraw-refunds.ts";
import { toAmount } from "../answers.ts";
import { noBody, paymentId } from "../fields.ts";
import { defineOperation } from "../operation.ts";
import { refundListAnswer, withdrawnAnswer } from "./shapes.ts";

/** GET /v1/payments/{id}/refunds: an addition of ours; how a merchant finds the id of a refund that waits. */
const list = defineOperation({
  method: "GET",
  path: "/v1/payments/:id/refunds",
  name: "listPaymentRefunds",
  summary: "Lists a payment's refunds, the first one first, and where each stands.",
  access: "merchant",
  success: 200,
  params: z.object({ id: paymentId }),
  answer: refundListAnswer,
  refusals: ["payment_not_found"],
  async handle(deps, { caller, merchant, params }) {
    const listed = await listPaymentRefunds(deps, { paymentId: params.id, mode: caller.mode, merchant });
    if (!listed.ok) return listed;
    return done({
      data: listed.value.map(({ amount, createdAt, paidAt, ...rest }) => ({
        ...rest,
        amount: toAmount(amount),
        createdAt: createdAt.toISOString(),
        paidAt: paidAt?.toISOString() ?? null,
      })),
    });
  },
});

/** POST /v1/refunds/{refundId}/withdraw: an addition of ours. */
const withdraw = defineOperation({
  method: "POST",
  path: "/v1/refunds/:refundId/withdraw",
  name: "withdrawRefund",
  summary:
    "Takes back a refund that waits or is held: nothing is sent, and its amount can be refunded again. Repeatable.",
  access: "merchant",
  success: 200,
  params: z.object({ refundId: z.string().regex(/^rfnd_[0-9a-f]{32}$/) }),
  body: noBody,
  answer: withdrawnAnswer,
  refusals: ["payment_not_found", "invalid_state"],
  async handle(deps, { caller, merchant, params }) {
    const withdrawn = await withdrawRefund(deps, { ...params, owner: { mode: caller.mode, merchant } });
    return withdrawn.ok ? done({ ...withdrawn.value, status: "withdrawn" as const }) : withdrawn;
  },
});

/** What a merchant may do with the refunds of a payment beside making them. */
export const refundOperations = [list, withdraw];
