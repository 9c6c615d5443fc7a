import { z } from "zod";
import { acceptConfirm } from "../../payments/lifecycle/confirm-payment.ts";
import { defineOperation } from "../contract/operation.ts";
import { ignored, optional, paymentId, pollQuery, text } from "../contract/request-schemas.ts";
import { statusResponse } from "../contract/response-schemas.ts";
import { toStatusResult } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";
import { pollVerification } from "../polling/long-polls.ts";

const result = z.object({
  type: z.literal("walletRpc", "expected walletRpc"),
  data: z.array(text(32_768)).min(1, "expected at least one element").max(16, "expected at most 16 elements"),
});

const collectedData = z.object({
  fields: z
    .array(z.object({ id: text(64).min(1, "expected a field's id"), value: text(1_024) }))
    .max(32, "expected at most 32 fields"),
});

export const confirmBody = z.object({
  optionId: text(128).min(1, "expected an option's id"),
  results: z.array(result).max(16, "expected at most 16 results"),
  collectedData: optional(collectedData),
  excludeFromRelayer: ignored,
});

/**
 * POST /v1/gateway/payment/{id}/confirm: submits what the wallet has signed. The response comes with the verification, or with
 * `maxPollMs` when the payment is final. A repeated confirm returns the current status.
 */
export const gatewayConfirm = defineOperation({
  method: "POST",
  path: "/v1/gateway/payment/:id/confirm",
  name: "gatewayConfirmPayment",
  summary:
    "Confirms a payment with the results of the wallet's actions. With maxPollMs, the response is held until the payment is final. A repeated confirm returns the current status.",
  access: "gateway",
  scope: "gateway",
  success: 200,
  response: statusResponse,
  refusals: ["payment_not_found", "payment_expired", "invalid_state", "quote_expired"],
  params: z.object({ id: paymentId }),
  query: pollQuery,
  body: confirmBody,
  async handle(deps, call) {
    const { requester, params, query, body, hold } = call;
    const paymentQuery = queryPayment(call, params.id);
    const { optionId, results } = body;
    const collected = body.collectedData && { fields: body.collectedData.fields, keepMs: deps.collectedDataMs };
    const confirm = { ...paymentQuery, requester, optionId, results, collected };
    const accept = (ended: Promise<void>) => acceptConfirm(deps, { ...confirm, ended });
    const status = await pollVerification(deps, paymentQuery, accept, {
      maxPollMs: query.maxPollMs,
      until: "final",
      ...hold,
    });
    return toStatusResult(status);
  },
});
