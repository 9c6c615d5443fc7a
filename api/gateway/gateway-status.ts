import { z } from "zod";
import { defineOperation } from "../contract/operation.ts";
import { paymentId, pollQuery } from "../contract/request-schemas.ts";
import { statusResponse } from "../contract/response-schemas.ts";
import { toStatusResult } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";
import { pollStatus } from "../polling/long-polls.ts";

/** GET /v1/gateway/payment/{id}/status: with `maxPollMs` the request is held until the status changes. */
export const gatewayStatus = defineOperation({
  method: "GET",
  path: "/v1/gateway/payment/:id/status",
  name: "gatewayGetPaymentStatus",
  summary: "Returns the status of a payment; with maxPollMs as soon as it changes.",
  access: "gateway",
  scope: "gateway",
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
