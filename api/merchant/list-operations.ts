import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { listMerchantPaymentViews, listPaymentViews } from "../../payments/lifecycle/list-payments.ts";
import type { Caller } from "../../payments/merchants/callers.ts";
import { chainIdPattern } from "../../runtime/caip-patterns.ts";
import type { ApiDeps } from "../api-deps.ts";
import { defineOperation } from "../contract/operation.ts";
import { ignored, instant, listQuery, merchantId, referenceId, repeated, text } from "../contract/request-schemas.ts";
import { paymentState } from "../contract/response-schemas.ts";
import { toListedPaymentResponse } from "../contract/responses.ts";
import { MAY_LAG, readLagging } from "../http/lagging-reads.ts";
import { paymentListResponse } from "./merchant-response-schemas.ts";
import { metadataFilter } from "./metadata-schemas.ts";

const chain = z.string().regex(chainIdPattern, "expected CAIP-2 chains such as eip155:8453");

const query = listQuery({ maxLimit: 200, defaultLimit: 50 }).extend({
  startTs: instant.optional(),
  endTs: instant.optional(),
  status: repeated(paymentState, `expected payment states (${paymentState.options.join(", ")})`).optional(),
  sortBy: z.enum(["date", "amount"], "expected date or amount").default("date"),
  sortDir: z.enum(["asc", "desc"], "expected asc or desc").default("desc"),
  token_symbol: repeated(text(32).min(1), "expected symbols of 1 to 32 characters").optional(),
  network: repeated(text(1_024), "expected CAIP-2 chains such as eip155:8453")
    .transform((lists) => lists.flatMap((list) => list.split(",")))
    .pipe(z.array(chain))
    .meta({
      describedAs: { type: "array", items: { type: "string", pattern: chainIdPattern.source }, commaSeparated: true },
    })
    .optional(),
  referenceId: referenceId.optional(),
  metadata: metadataFilter.optional(),
  /** A filter that the published API deprecates and ignores. */
  asset: ignored.meta({
    describedAs: { type: "string", deprecated: true },
    description: "Accepted and ignored; use token_symbol.",
  }),
});

function toArgs(caller: Caller, input: z.output<typeof query>) {
  const {
    startTs: from,
    endTs: before,
    status: states,
    token_symbol: symbols,
    network: chains,
    referenceId: reference,
    asset: _,
    ...rest
  } = input;
  return { ...caller, from, before, states, symbols, chains, reference, ...rest };
}

function toFreshness({ endTs, referenceId }: z.output<typeof query>) {
  return { until: endTs, mustBeCurrent: referenceId !== undefined };
}

async function toListResponse(deps: ApiDeps, listed: Awaited<ReturnType<typeof listPaymentViews>>) {
  if (!listed.ok) return listed;
  const { items, nextCursor, stats } = listed.value;
  await deps.statuses.notify(items);
  // The API has a number here; the exact amounts are in the payments.
  const totalRevenue = stats.totalRevenue.map(({ amount, currency }) => ({ amount: Number(amount), currency }));
  return done({
    data: items.map((item) => toListedPaymentResponse(item, deps.publicUrl)),
    nextCursor,
    stats: { ...stats, totalRevenue },
  });
}

const ofMerchant = defineOperation({
  method: "GET",
  path: "/v1/merchants/payments",
  name: "listMerchantPayments",
  summary: `Lists a merchant's payments. ${MAY_LAG}`,
  access: "merchant",
  scope: "payments:read",
  success: 200,
  query,
  response: paymentListResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, { caller, merchant: { merchantId }, query }) {
    const args = { ...toArgs(caller, query), merchantId };
    const list = () => readLagging(deps, (on) => listMerchantPaymentViews(on, args), toFreshness(query));
    return toListResponse(deps, await deps.runList(caller.accountId, list));
  },
});

const ofAccount = defineOperation({
  method: "GET",
  path: "/v1/payments",
  name: "listPayments",
  summary: `Lists the payments of all merchants of the account, or of some of them. ${MAY_LAG}`,
  access: "account",
  merchantNarrows: true,
  scope: "payments:read",
  success: 200,
  query: query.extend({ merchantId: repeated(merchantId, "expected merchant ids").optional() }),
  response: paymentListResponse,
  async handle(deps, { caller, query: { merchantId: merchantIds, ...rest } }) {
    const args = { ...toArgs(caller, rest), merchantIds };
    const list = () => readLagging(deps, (on) => listPaymentViews(on, args), toFreshness(rest));
    return toListResponse(deps, await deps.runList(caller.accountId, list));
  },
});

/** GET /v1/merchants/payments and GET /v1/payments: list payments, by default the newest first. */
export const listOperations = [ofMerchant, ofAccount];
