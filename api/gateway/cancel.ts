import { z } from "zod";
import { cancelPayment } from "../../payments/cancel.ts";
import { done } from "../../payments/errors.ts";
import { toCancelledAnswer } from "../answers.ts";
import { noBody, paymentId } from "../fields.ts";
import { defineOperation } from "../operation.ts";
import { cancelledAnswer } from "../shapes.ts";

/**
 * POST /v1/gateway/payment/{id}/cancel: the buyer does not want to pay. For the merchant's own key, and for the one wallet
 * instance that has requested the options: an app id is public.
 */
export const gatewayCancel = defineOperation({
  method: "POST",
  path: "/v1/gateway/payment/:id/cancel",
  name: "gatewayCancelPayment",
  summary:
    "Cancels a payment that awaits its buyer, for the only wallet instance that has requested its options, or the merchant's account. Repeatable.",
  access: "gateway",
  success: 200,
  params: z.object({ id: paymentId }),
  body: noBody,
  answer: cancelledAnswer,
  refusals: ["payment_not_found", "invalid_state"],
  async handle(deps, { caller, requester, params }) {
    const asked = { paymentId: params.id, mode: caller.mode };
    const isMerchant = { accountId: caller.keyId === null ? undefined : caller.accountId };
    const cancelled = await cancelPayment(deps, asked, "cancelled_by_user", { ...isMerchant, requester });
    return cancelled.ok ? done(toCancelledAnswer(cancelled.value)) : cancelled;
  },
});
