import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { cancelPayment } from "../../payments/lifecycle/cancel-payment.ts";
import { defineOperation } from "../contract/operation.ts";
import { ignoredBody, paymentId } from "../contract/request-schemas.ts";
import { cancelledResponse } from "../contract/response-schemas.ts";
import { toCancelledResponse } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";

/**
 * POST /v1/gateway/payment/{id}/cancel: the buyer does not want to pay. An app id is public, so only a key of the merchant's
 * account with the scope `payments:write` and the one wallet instance that has requested the options may cancel.
 */
export const gatewayCancel = defineOperation({
  method: "POST",
  path: "/v1/gateway/payment/:id/cancel",
  name: "gatewayCancelPayment",
  summary:
    "Cancels an open payment, for the merchant's account or the only wallet instance that has requested its options. Repeatable.",
  access: "gateway",
  scope: "gateway",
  success: 200,
  params: z.object({ id: paymentId }),
  body: ignoredBody,
  response: cancelledResponse,
  refusals: ["payment_not_found", "invalid_state"],
  async handle(deps, call) {
    const { caller, requester, params } = call;
    const mayWrite = caller.scopes.includes("payments:write");
    const account = mayWrite ? { id: caller.accountId, actor: caller.actor } : undefined;
    const cancelled = await cancelPayment(deps, queryPayment(call, params.id), "cancelled_by_user", {
      account,
      requester,
    });
    return cancelled.ok ? done(toCancelledResponse(cancelled.value)) : cancelled;
  },
});
