import { z } from "zod";
import { done } from "../../payments/errors.ts";
import { toStatusAnswer } from "../answers.ts";
import { paymentId, pollQuery } from "../fields.ts";
import { defineOperation } from "../operation.ts";
import { pollStatus } from "../polls.ts";
import { statusAnswer } from "../shapes.ts";

/** GET /v1/gateway/payment/{id}/status: held with `maxPollMs` until it changes. */
export const gatewayStatus = defineOperation({
  method: "GET",
  path: "/v1/gateway/payment/:id/status",
  name: "gatewayGetPaymentStatus",
  summary: "Says where a payment stands; with maxPollMs as soon as that has changed.",
  access: "gateway",
  success: 200,
  answer: statusAnswer,
  refusals: ["payment_not_found"],
  params: z.object({ id: paymentId }),
  query: pollQuery,
  async handle(deps, { caller, params, query, hold }) {
    const asked = { paymentId: params.id, mode: caller.mode };
    const status = await pollStatus(deps, asked, { maxPollMs: query.maxPollMs, ...hold });
    return status.ok ? done(toStatusAnswer(status.value)) : status;
  },
});
