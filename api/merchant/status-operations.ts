import { z } from "zod";
import { defineOperation, type Operation } from "../contract/operation.ts";
import { paymentId, pollQuery } from "../contract/request-schemas.ts";
import { statusResponse } from "../contract/response-schemas.ts";
import { toStatusResult } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";
import { pollStatus } from "../polling/long-polls.ts";

const define = (path: Operation["path"], name: string, use: string) =>
  defineOperation({
    method: "GET",
    path,
    name,
    summary: `Returns the status of a payment, which is the authoritative result; with maxPollMs as soon as it changes. ${use}`,
    access: "merchant",
    scope: "payments:read",
    success: 200,
    response: statusResponse,
    refusals: ["payment_not_found"],
    params: z.object({ id: paymentId }),
    query: pollQuery,
    handle(deps, call) {
      const { params, query, hold } = call;
      const paymentQuery = queryPayment(call, params.id);
      return pollStatus(deps, paymentQuery, { maxPollMs: query.maxPollMs, ...hold }).then(toStatusResult);
    },
  });

/**
 * GET /v1/payments/{id}/status and its alias: the authoritative result. With `maxPollMs` the request is held until it
 * changes.
 */
export const statusOperations = [
  define("/v1/payments/:id/status", "getPaymentStatus", "New integrations use this path."),
  define(
    "/v1/merchant/payment/:id/status",
    "getMerchantPaymentStatus",
    "The same as /v1/payments/{id}/status, for terminals and shops that use this published path.",
  ),
];
