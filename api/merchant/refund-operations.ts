import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { listPaymentRefunds, withdrawRefund } from "../../payments/payouts/withdraw-refunds.ts";
import { defineOperation } from "../contract/operation.ts";
import { noBody, paymentId } from "../contract/request-schemas.ts";
import { toAmount } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";
import { refundListResponse, withdrawnRefundResponse } from "./merchant-response-schemas.ts";

/**
 * GET /v1/payments/{id}/refunds: an addition to the specification. A merchant finds the id of a waiting refund with it.
 */
const list = defineOperation({
  method: "GET",
  path: "/v1/payments/:id/refunds",
  name: "listPaymentRefunds",
  summary: "Lists a payment's refunds with their status, the oldest first.",
  access: "merchant",
  scope: "refunds",
  success: 200,
  params: z.object({ id: paymentId }),
  response: refundListResponse,
  refusals: ["payment_not_found"],
  async handle(deps, call) {
    const listed = await listPaymentRefunds(deps, queryPayment(call, call.params.id));
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

/** POST /v1/refunds/{refundId}/withdraw: an addition to the specification. */
const withdraw = defineOperation({
  method: "POST",
  path: "/v1/refunds/:refundId/withdraw",
  name: "withdrawRefund",
  summary:
    "Withdraws a refund that waits or is held: no money is sent, and its amount can be refunded again. Repeatable.",
  access: "merchant",
  scope: "refunds",
  success: 200,
  params: z.object({ refundId: z.string().regex(/^rfnd_[0-9a-f]{32}$/) }),
  body: noBody,
  response: withdrawnRefundResponse,
  refusals: ["payment_not_found", "invalid_state"],
  async handle(deps, { caller, merchant, params }) {
    const withdrawn = await withdrawRefund(deps, {
      ...params,
      actor: caller.actor,
      owner: { ...caller, merchant },
    });
    return withdrawn.ok ? done({ ...withdrawn.value, status: "withdrawn" as const }) : withdrawn;
  },
});

/** Operations on the refunds of a payment. */
export const refundOperations = [list, withdraw];
