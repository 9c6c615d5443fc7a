import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { listOptions } from "../../payments/options/list-options.ts";
import { defineOperation } from "../contract/operation.ts";
import { flag, ignored, paymentId } from "../contract/request-schemas.ts";
import { optionsResponse } from "../contract/response-schemas.ts";
import { toOptionResponse, toPaymentInfo } from "../contract/responses.ts";
import { queryPayment } from "../http/auth.ts";

export const optionsBody = z.object({
  /** CAIP-10. A text that is not an account is skipped, and so is an account on an unknown chain. */
  accounts: z.array(z.string()).min(1, "expected at least one account"),
  /** Some clients send it; no specification defines it. Every call reads the balances anew. */
  refresh: ignored,
});

/** POST /v1/gateway/payment/{id}/options: lists how the given accounts can pay. */
export const gatewayOptions = defineOperation({
  method: "POST",
  path: "/v1/gateway/payment/:id/options",
  name: "gatewayGetPaymentOptions",
  summary: "Lists how the given accounts can pay.",
  access: "gateway",
  scope: "gateway",
  success: 200,
  response: optionsResponse,
  refusals: ["payment_not_found", "payment_expired", "invalid_state", "sanctioned_user", "chain_unavailable"],
  params: z.object({ id: paymentId }),
  query: z.object({ includePaymentInfo: flag.default(false) }),
  body: optionsBody,
  async handle(deps, call) {
    const { requester, params, query, body } = call;
    const listed = await listOptions(deps, {
      ...queryPayment(call, params.id),
      accounts: body.accounts,
      requester,
    });
    if (!listed.ok) return listed;
    const { payment } = listed.value;
    const options = listed.value.options.map((option) =>
      toOptionResponse(option, { ...payment, publicUrl: deps.publicUrl, requester }),
    );
    return done({
      options,
      // Old clients read one request for data per payment. The payment gets that of the first option that has one.
      collectData: options.find(({ collectData }) => collectData !== null)?.collectData ?? null,
      ...(query.includePaymentInfo ? { info: toPaymentInfo(payment, deps.publicUrl) } : {}),
    });
  },
});
