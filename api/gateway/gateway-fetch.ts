import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { listActions } from "../../payments/options/list-options.ts";
import { defineOperation } from "../contract/operation.ts";
import { paymentId, text } from "../contract/request-schemas.ts";
import { actionsResponse } from "../contract/response-schemas.ts";
import { toActionResponse } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";

export const fetchBody = z.object({ optionId: text(128).min(1, "expected an option's id"), data: text(32_768) });

/** POST /v1/gateway/payment/{id}/fetch: resolves a build action; empty `data` requests all actions of the option. */
export const gatewayFetch = defineOperation({
  method: "POST",
  path: "/v1/gateway/payment/:id/fetch",
  name: "gatewayFetchActions",
  summary: "Resolves a build action into wallet actions; empty data requests all actions of the option.",
  access: "gateway",
  scope: "gateway",
  success: 200,
  response: actionsResponse,
  refusals: ["payment_not_found", "payment_expired", "invalid_state", "quote_expired", "chain_unavailable"],
  params: z.object({ id: paymentId }),
  body: fetchBody,
  async handle(deps, call) {
    const listed = await listActions(deps, { ...queryPayment(call, call.params.id), ...call.body });
    return listed.ok ? done({ actions: listed.value.actions.map(toActionResponse) }) : listed;
  },
});
