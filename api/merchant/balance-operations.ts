import { z } from "zod";
import type { StatementLineView } from "../../payments/accounting/read-statements.ts";
import { type BalanceView, readBalances, readStatementPage } from "../../payments/accounting/read-statements.ts";
import { done } from "../../payments/error-codes.ts";
import type { ApiDeps } from "../api-deps.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery, merchantId } from "../contract/request-schemas.ts";
import { instant } from "../contract/response-schemas.ts";
import { readLagging } from "../http/lagging-reads.ts";
import { nextCursor } from "./merchant-response-schemas.ts";
import { metadata } from "./metadata-schemas.ts";

const readable = { method: "GET", access: "account", scope: "payments:read", success: 200 } as const;
const ofMerchant = { params: z.object({ merchantId }), paramsCode: "merchant_not_found" } as const;

const shownAsset = {
  asset: z.string().meta({
    description: "CAIP-19",
    example: "eip155:8453/erc20:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
  }),
  symbol: z.string().meta({ example: "USDC" }),
  decimals: z.int().min(0).nullable().meta({
    description: "How many digits of an amount are decimals; null for an asset of which they are not known.",
    example: 6,
  }),
};
const ofAsset = {
  merchantId: z.string().meta({ example: "mrch_4b7d1c0e9f8a4c5db6e7f8091a2b3c4d" }),
  ...shownAsset,
};
const minor = z
  .string()
  .regex(/^-?\d+$/)
  .meta({ description: "Minor units of the asset.", example: "12500000" });

const balance = z
  .object({
    ...ofAsset,
    amount: minor.meta({ description: "What is owed and whose payout has not begun." }),
    inTransit: minor.meta({ description: "What is owed and in payouts that have begun and are not final." }),
  })
  .meta({ id: "MerchantBalance", description: "What a merchant is owed in an asset and has not been paid yet." });

const line = z
  .object({
    ...ofAsset,
    at: instant.nullable().meta({ description: "When it was booked; null for a balance." }),
    kind: z.enum(["opening", "payment", "settlement", "refund", "assigned", "closing"]).meta({
      description: "opening, closing: the balance before and after the period. assigned: money that arrived otherwise.",
    }),
    paymentId: z.string().nullable(),
    refundId: z.string().nullable().meta({ description: "The refund; of refunds only." }),
    referenceId: z.string().nullable(),
    description: z.string().nullable(),
    metadata: metadata.nullable(),
    gross: minor.nullable().meta({ description: "What the buyer paid in this asset; of payments only." }),
    fee: minor.nullable().meta({ description: "The operator's fee, part of gross; of payments only." }),
    paid: z
      .object({
        ...shownAsset,
        amount: minor,
        fee: minor.meta({ description: "The operator's fee, part of amount." }),
      })
      .nullable()
      .meta({
        description:
          "What the buyer paid in another asset than the merchant is owed, in minor units of that asset. gross and fee are null then, and change is what amount without fee was converted to.",
      }),
    change: minor.nullable().meta({ description: "The change of the balance; negative for settlements and refunds." }),
    balance: minor,
    to: z
      .string()
      .nullable()
      .meta({ description: "The receiver of a settlement or refund, CAIP-10 in its chain's own spelling." }),
    txHash: z.string().nullable().meta({ description: "Null while a settlement or refund is in transit." }),
  })
  .meta({ id: "StatementLine", description: "A change of a merchant's balance in an asset, or the balance itself." });

const DAY = "expected a date such as 2026-03-31";
const day = z.iso
  .date(DAY)
  .refine((text) => !text.startsWith("0000"), DAY) // Postgres has no year 0.
  .meta({ description: "A UTC day, inclusive.", example: "2026-03-31" });

/** The days of a statement. A statement of a period that has not ended is not final. */
export const period = { from: day, until: day };
export const isPeriod = ({ from, until }: { from: string; until: string }) => from <= until;
export const PERIOD = { path: ["until"], message: "is before from" };

const DAY_MS = 24 * 60 * 60_000;
/** Returns the moment at which a statement's period ends. */
export const endOf = ({ until }: { until: string }) => new Date(Date.parse(until) + DAY_MS);

const toBalance = ({ amount, inTransit, ...rest }: BalanceView) => ({
  ...rest,
  amount: amount.toString(),
  inTransit: inTransit.toString(),
});

function toLine(view: StatementLineView) {
  const { at, gross, fee, paid, change, balance, ...rest } = view;
  return {
    ...rest,
    paid: paid && { ...paid, amount: paid.amount.toString(), fee: paid.fee.toString() },
    at: at?.toISOString() ?? null,
    gross: gross?.toString() ?? null,
    fee: fee?.toString() ?? null,
    change: change?.toString() ?? null,
    balance: balance.toString(),
  };
}

const balances = {
  ...readable,
  query: listQuery({ maxLimit: 200, defaultLimit: 50 }),
  response: z.object({ data: z.array(balance), nextCursor }),
} as const;

const accountBalances = defineOperation({
  ...balances,
  path: "/v1/balances",
  name: "listBalances",
  summary: "Lists what the merchants of the account are owed and have not been paid yet, by merchant and asset.",
  async handle(deps, { caller: { accountId, mode, onlyMerchants }, query }) {
    const read = await readBalances(deps, { accountId, mode, onlyMerchants, ...query });
    return read.ok ? done({ data: read.value.items.map(toBalance), nextCursor: read.value.nextCursor }) : read;
  },
});

const merchantBalances = defineOperation({
  ...balances,
  ...ofMerchant,
  path: "/v1/merchants/:merchantId/balances",
  name: "listMerchantBalances",
  summary: "Lists what a merchant is owed and has not been paid yet, by asset.",
  refusals: ["merchant_not_found"],
  async handle(deps, { caller: { accountId, mode, onlyMerchants }, params, query }) {
    const read = await readBalances(deps, { accountId, mode, onlyMerchants, ...params, ...query });
    return read.ok ? done({ data: read.value.items.map(toBalance), nextCursor: read.value.nextCursor }) : read;
  },
});

/**
 * Reads a page of a statement. While bookings are added, the primary serves it: a page of the replica could lack some that
 * an earlier page of the primary has counted.
 */
async function readStatement(deps: ApiDeps, args: Parameters<typeof readStatementPage>[1]) {
  const read = await deps.runList(args.accountId, () =>
    readLagging(deps, (on) => readStatementPage(on, args), { until: endOf(args) }),
  );
  return read.ok ? done({ data: read.value.items.map(toLine), nextCursor: read.value.nextCursor }) : read;
}

const statement = {
  ...readable,
  query: listQuery({ maxLimit: 500, defaultLimit: 100 }).extend(period).refine(isPeriod, PERIOD),
  response: z.object({ data: z.array(line), nextCursor }),
} as const;

const accountStatement = defineOperation({
  ...statement,
  path: "/v1/statement",
  name: "getStatement",
  summary:
    "Returns the statement of all merchants of the account, by merchant, asset and booking. /v1/statement.csv streams it as CSV.",
  async handle(deps, { caller: { accountId, mode, onlyMerchants }, query }) {
    return readStatement(deps, { accountId, mode, onlyMerchants, ...query });
  },
});

const merchantStatement = defineOperation({
  ...statement,
  ...ofMerchant,
  path: "/v1/merchants/:merchantId/statement",
  name: "getMerchantStatement",
  summary:
    "Returns a merchant's payments, fees, payouts and refunds of a period, by asset and booking, between an opening and a closing balance. …/statement.csv streams it as CSV.",
  refusals: ["merchant_not_found"],
  async handle(deps, { caller: { accountId, mode, onlyMerchants }, params, query }) {
    return readStatement(deps, { accountId, mode, onlyMerchants, ...params, ...query });
  },
});

/** Operations on balances and statements; additions to the specification. No money moves in test mode, so they are empty there. */
export const balanceOperations = [accountBalances, merchantBalances, accountStatement, merchantStatement];
