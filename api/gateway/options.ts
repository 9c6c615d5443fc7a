import { z } from "zod";
import { done } from "../../payments/errors.ts";
import { listOptions } from "../../payments/options.ts";
import { toOptionAnswer, toPaymentInfo } from "../answers.ts";
import { account, ignored, paymentId } from "../fields.ts";
import { defineOperation } from "../operation.ts";
import { optionsAnswer } from "../shapes.ts";

const flag = z.enum(["true", "false"], "expected true or false").transform((given) => given === "true");

/** POST /v1/gateway/payment/{id}/options: how these accounts can pay. */
export const gatewayOptions = defineOperation({
  method: "POST",
  path: "/v1/gateway/payment/:id/options",
  name: "gatewayGetPaymentOptions",
  summary: "Lists how these accounts can pay.",
  access: "gateway",
  success: 200,
  answer: optionsAnswer,
  refusals: ["payment_not_found", "payment_expired", "invalid_state", "sanctioned_user"],
  params: z.object({ id: paymentId }),
  query: z.object({ includePaymentInfo: flag.default(false) }),
  body: z.object({
    accounts: z.array(account).min(1, "expected 1 to 50 accounts").max(50, "expected 1 to 50 accounts"),
    /** Sent by some clients, without a meaning that anybody has published. Every call reads balances anew anyway. */
    refresh: ignored,
  }),
  async handle(deps, { caller, requester, params, query, body }) {
    const asked = { paymentId: params.id, mode: caller.mode, accounts: body.accounts };
    const listed = await listOptions(deps, { ...asked, requester });
    if (!listed.ok) return listed;
    const { payment } = listed.value;
    const options = listed.value.options.map((option) =>
      toOptionAnswer(option, { ...payment, publicUrl: deps.publicUrl, requester }),
    );
    return done({
      options,
      // For old clients: what some option needs.
      collectData: options.find(({ collectData }) => collectData !== null)?.collectData ?? null,
      ...(query.includePaymentInfo ? { info: toPaymentInfo(payment, deps.publicUrl) } : {}),
    });
  },
});
