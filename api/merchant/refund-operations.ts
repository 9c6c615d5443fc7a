import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { toMoney } from "../../payments/lifecycle/read-payment.ts";
import { findRefundView, listRefundViews } from "../../payments/payouts/find-refunds.ts";
import { MAX_PARTS } from "../../payments/payouts/refund-parts.ts";
import { refundPayment } from "../../payments/payouts/refund-payment.ts";
import { type RefundView, refundStatuses } from "../../payments/payouts/refund-views.ts";
import { withdrawRefund } from "../../payments/payouts/withdraw-refunds.ts";
import type { ApiDeps } from "../api-deps.ts";
import { defineOperation } from "../contract/operation.ts";
import {
  amount,
  instant,
  listQuery,
  merchantId,
  noBody,
  paymentId,
  repeated,
  text,
} from "../contract/request-schemas.ts";
import { toAmount } from "../contract/responses.ts";
import { type ActingCaller, type Merchant, queryPayment } from "../http/auth.ts";
import { MAY_LAG, readLagging } from "../http/lagging-reads.ts";
import { refundListResponse, refundResponse, refundStatus } from "./refund-response-schemas.ts";

const params = z.object({ refundId: z.string().regex(/^rfnd_[0-9a-f]{32}$/) });

async function toRefund(deps: ApiDeps, view: RefundView) {
  const { mode: _, asset, amount, createdAt, updatedAt, succeededAt, ...rest } = view;
  return {
    ...rest,
    amount: toAmount(await toMoney(deps, `caip19/${asset}`, amount)),
    createdAt: createdAt.toISOString(),
    lastUpdatedAt: updatedAt.toISOString(),
    succeededAt: succeededAt?.toISOString() ?? null,
  };
}

/** Returns whose refunds a call reaches: those of the merchant that it names, if the key reaches that merchant. */
function toOwner({ caller, merchant }: { caller: ActingCaller; merchant: Merchant }) {
  const { accountId, mode, onlyMerchants } = caller;
  return { accountId, mode, onlyMerchants, merchantId: merchant.merchantId };
}

/** Not `optional`, which takes null for left out: a shop that failed to compute a part would refund everything. */
const part = amount.optional().meta({
  description: `The part to refund; left out, all that is left; null is refused. Refused (params_validation) also if it is below the dust amount that the operator has set for the asset, or if the payment has ${MAX_PARTS} refunds already that were not withdrawn, unless it is all that is left.`,
});

/**
 * POST /v1/refunds. `amount` is an addition to the specification. A partial refund requires an `Idempotency-Key`, because a
 * repeat after a lost response would refund a second part; a full refund is possible only once.
 */
const create = defineOperation({
  method: "POST",
  path: "/v1/refunds",
  name: "createRefund",
  summary:
    "Refunds a payment to its payer: the remaining amount, or a part (amount), which requires an Idempotency-Key. No money moves in test mode.",
  access: "merchant",
  scope: "refunds",
  success: 200,
  idempotency: "optional",
  needsKey: ({ body }) => body.amount !== undefined,
  body: z.strictObject({ paymentId: text(64).min(1, "expected a payment's id"), amount: part }),
  response: refundResponse,
  refusals: ["payment_not_found", "payment_not_succeeded", "already_refunded"],
  async handle(deps, call) {
    const { paymentId, amount } = call.body;
    const made = await refundPayment(deps, { ...queryPayment(call, paymentId), amount, actor: call.caller.actor });
    return made.ok ? done(await toRefund(deps, made.value)) : made;
  },
});

/** GET /v1/refunds/{refundId}: an addition to the specification. */
const get = defineOperation({
  method: "GET",
  path: "/v1/refunds/:refundId",
  name: "getRefund",
  summary: "Returns a refund with its status, and its transaction once that is final.",
  access: "merchant",
  scope: "payments:read",
  success: 200,
  params,
  paramsCode: "refund_not_found",
  response: refundResponse,
  refusals: ["refund_not_found"],
  async handle(deps, call) {
    const found = await findRefundView(deps, { ...call.params, owner: toOwner(call) });
    return found.ok ? done(await toRefund(deps, found.value)) : found;
  },
});

/** GET /v1/refunds: an addition to the specification. */
const list = defineOperation({
  method: "GET",
  path: "/v1/refunds",
  name: "listRefunds",
  summary: `Lists the refunds of the account, of some of its merchants or of one payment, the newest first. ${MAY_LAG}`,
  access: "account",
  merchantNarrows: true,
  scope: "payments:read",
  success: 200,
  query: listQuery({ maxLimit: 200, defaultLimit: 50 }).extend({
    paymentId: paymentId.optional(),
    merchantId: repeated(merchantId, "expected merchant ids").optional(),
    status: repeated(refundStatus, `expected refund statuses (${refundStatuses.join(", ")})`).optional(),
    startTs: instant.optional(),
    endTs: instant.optional(),
  }),
  response: refundListResponse,
  async handle(deps, { caller, query }) {
    const { merchantId: merchantIds, status: statuses, startTs: from, endTs: before, ...rest } = query;
    const { accountId, mode, onlyMerchants } = caller;
    const owner = { accountId, mode, onlyMerchants };
    const args = { owner, merchantIds, statuses, from, before, ...rest };
    const freshness = { until: before, mustBeCurrent: query.paymentId !== undefined };
    const listed = await readLagging(deps, (on) => listRefundViews(on, args), freshness);
    if (!listed.ok) return listed;
    const { items, nextCursor } = listed.value;
    return done({ data: await Promise.all(items.map((item) => toRefund(deps, item))), nextCursor });
  },
});

/** POST /v1/refunds/{refundId}/withdraw: an addition to the specification. */
const withdraw = defineOperation({
  method: "POST",
  path: "/v1/refunds/:refundId/withdraw",
  name: "withdrawRefund",
  summary:
    "Withdraws a refund that is pending or held: no money is sent, and its amount can be refunded again. Repeatable.",
  access: "merchant",
  scope: "refunds",
  success: 200,
  params,
  paramsCode: "refund_not_found",
  body: noBody,
  response: refundResponse,
  refusals: ["refund_not_found", "invalid_state"],
  async handle(deps, call) {
    const { actor } = call.caller;
    const withdrawn = await withdrawRefund(deps, { ...call.params, actor, owner: toOwner(call) });
    return withdrawn.ok ? done(await toRefund(deps, withdrawn.value)) : withdrawn;
  },
});

/** Operations on refunds. */
export const refundOperations = [create, get, list, withdraw];
