import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { findPaymentView } from "../../payments/lifecycle/read-payment.ts";
import { defineOperation } from "../contract/operation.ts";
import { paymentId } from "../contract/request-schemas.ts";
import { paymentInfo } from "../contract/response-schemas.ts";
import { toPaymentInfo } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";

/** GET /v1/gateway/payment/{id}: returns what a checkout page shows. */
export const gatewayPayment = defineOperation({
  method: "GET",
  path: "/v1/gateway/payment/:id",
  name: "gatewayGetPayment",
  summary: "Returns what a checkout page shows of a payment.",
  access: "gateway",
  scope: "gateway",
  success: 200,
  response: paymentInfo,
  refusals: ["payment_not_found"],
  params: z.object({ id: paymentId }),
  async handle(deps, call) {
    const payment = await findPaymentView(deps, queryPayment(call, call.params.id));
    if (!payment.ok) return payment;
    await deps.statuses.notify([payment.value]);
    return done(toPaymentInfo(payment.value, deps.publicUrl));
  },
});
