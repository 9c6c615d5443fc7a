import { z } from "zod";
import { done } from "../../payments/errors.ts";
import { findPaymentView } from "../../payments/read.ts";
import { toPaymentInfo } from "../answers.ts";
import { paymentId } from "../fields.ts";
import { defineOperation } from "../operation.ts";

/** GET /v1/gateway/payment/{id}: what a checkout page shows. */
export const gatewayPayment = defineOperation({
  method: "GET",
  path: "/v1/gateway/payment/:id",
  access: "gateway",
  success: 200,
  params: z.object({ id: paymentId }),
  async handle(deps, { caller, params }) {
    const payment = await findPaymentView(deps, { paymentId: params.id, mode: caller.mode });
    return payment.ok ? done(toPaymentInfo(payment.value)) : payment;
  },
});
