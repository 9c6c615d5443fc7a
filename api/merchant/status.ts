import { z } from "zod";
import { done } from "../../payments/errors.ts";
import { toStatusAnswer } from "../answers.ts";
import { paymentId, pollQuery } from "../fields.ts";
import { defineOperation, type Operation } from "../operation.ts";
import { pollStatus } from "../polls.ts";
import { statusAnswer } from "../shapes.ts";

const define = (path: Operation["path"], name: string) =>
  defineOperation({
    method: "GET",
    path,
    name,
    summary: "Says where a payment stands; the authoritative result. With maxPollMs as soon as that has changed.",
    access: "merchant",
    success: 200,
    answer: statusAnswer,
    refusals: ["payment_not_found"],
    params: z.object({ id: paymentId }),
    query: pollQuery,
    async handle(deps, { caller, merchant, params, query, hold }) {
      const asked = { paymentId: params.id, mode: caller.mode, merchant };
      const status = await pollStatus(deps, asked, { maxPollMs: query.maxPollMs, ...hold });
      return status.ok ? done(toStatusAnswer(status.value)) : status;
    },
  });

/** GET /v1/payments/{id}/status and its twin: the authoritative result, held with `maxPollMs` until it changes. */
export const statusOperations = [
  define("/v1/payments/:id/status", "getPaymentStatus"),
  define("/v1/merchant/payment/:id/status", "getMerchantPaymentStatus"),
];
