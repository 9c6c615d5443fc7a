import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { cancelPayment } from "../../payments/lifecycle/cancel-payment.ts";
import { findPaymentDetail } from "../../payments/lifecycle/read-payment.ts";
import { simulatePayment } from "../../payments/lifecycle/simulate-payment.ts";
import { defineOperation } from "../contract/operation.ts";
import { ignoredBody, ignoredQuery, paymentId } from "../contract/request-schemas.ts";
import { cancelledResponse, statusResponse } from "../contract/response-schemas.ts";
import { toCancelledResponse, toPaymentResponse, toStatusResult } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";
import { paymentResponse } from "./merchant-response-schemas.ts";

const params = z.object({ id: paymentId });

const get = defineOperation({
  method: "GET",
  path: "/v1/payments/:id",
  name: "getPayment",
  summary: "Returns a payment, with its payout once that has arrived.",
  access: "merchant",
  scope: "payments:read",
  success: 200,
  params,
  response: paymentResponse,
  refusals: ["payment_not_found"],
  async handle(deps, call) {
    const found = await findPaymentDetail(deps, queryPayment(call, call.params.id));
    if (!found.ok) return found;
    await deps.statuses.notify([found.value]);
    return done(toPaymentResponse(found.value, deps.publicUrl));
  },
});

const cancel = defineOperation({
  method: "POST",
  path: "/v1/payments/:id/cancel",
  name: "cancelPayment",
  summary: "Cancels an open payment. Repeatable.",
  access: "merchant",
  scope: "payments:write",
  success: 200,
  params,
  query: ignoredQuery,
  body: ignoredBody,
  response: cancelledResponse,
  refusals: ["payment_not_found", "invalid_state"],
  async handle(deps, call) {
    const { caller, requester } = call;
    const account = { id: caller.accountId, actor: caller.actor };
    const by = { account, requester };
    const cancelled = await cancelPayment(deps, queryPayment(call, call.params.id), "cancelled_by_merchant", by);
    return cancelled.ok ? done(toCancelledResponse(cancelled.value)) : cancelled;
  },
});

/**
 * POST /v1/payments/{id}/simulate: produces the other outcomes in test mode; a confirmed test payment succeeds by
 * itself.
 */
const simulate = defineOperation({
  method: "POST",
  path: "/v1/payments/:id/simulate",
  name: "simulatePayment",
  summary: "Moves a test payment to a state, to show what each outcome looks like. Test keys only.",
  access: "merchant",
  scope: "payments:write",
  success: 200,
  params,
  body: z.strictObject({
    status: z.enum(
      ["processing", "succeeded", "failed", "expired", "cancelled"],
      "expected processing, succeeded, failed, expired or cancelled",
    ),
  }),
  response: statusResponse,
  refusals: ["payment_not_found", "invalid_state", "not_sandbox_api_key", "chain_unavailable"],
  async handle(deps, call) {
    const driven = await simulatePayment(deps, queryPayment(call, call.params.id), call.body.status);
    return toStatusResult(driven);
  },
});

/** Operations on one payment. */
export const paymentOperations = [get, cancel, simulate];
