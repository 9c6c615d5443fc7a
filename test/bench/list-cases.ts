import type { Pool } from "../../db/tables.ts";
import { readBalances, readStatementPage } from "../../payments/accounting/read-statements.ts";
import { createAssetUnits } from "../../payments/asset-units.ts";
import { type ListArgs, listPaymentViews } from "../../payments/lifecycle/list-payments.ts";
import { listPaymentLines } from "../../payments/maintenance/operator-actions.ts";
import { listRefundViews } from "../../payments/payouts/find-refunds.ts";
import { listDeliveries } from "../../payments/webhooks/list-deliveries.ts";
import { listEvents } from "../../payments/webhooks/list-events.ts";

/** The account whose lists are read, with its merchants in the order of their payments. */
export type Owner = { accountId: string; merchantIds: string[]; endpointId: string };

type Case = [name: string, request: () => Promise<unknown>];

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Returns a request for each kind of list page that the api and the command line serve. */
export function listCases(db: Pool, owner: Owner): Case[] {
  return [...paymentLists(db, owner), ...otherLists(db, owner)];
}

function paymentLists(db: Pool, { accountId, merchantIds }: Owner): Case[] {
  const today = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS);
  const ago = (days: number) => new Date(today.getTime() - days * DAY_MS);
  /** Lengths of time that end inside of a day, 100 days ago. */
  const last = (ms: number) => {
    const before = new Date(ago(100).getTime() + 15.5 * HOUR_MS);
    return { from: new Date(before.getTime() - ms), before };
  };
  /** The most days of which merchants have no sets. */
  const untilMonthEnd = {
    from: new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 6, 2)),
    before: new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 5, 30)),
  };
  const [first = "", ...others] = merchantIds;
  const small = merchantIds[40] ?? first;
  const at = (key: string) => Buffer.from(JSON.stringify([key, "pay_0"])).toString("base64url");
  const [base, polygon, none] = ["eip155:8453", "eip155:137", "eip155:10"];
  const filters: [string, Partial<ListArgs>][] = [
    ["first page", {}],
    ["oldest first", { sortDir: "asc" }],
    ["page in the middle (cursor)", { cursor: at(ago(180).toISOString()) }],
    ["page near the end (cursor)", { cursor: at(ago(360).toISOString()) }],
    ["one merchant (14 %)", { merchantIds: [first] }],
    ["one merchant (1 %)", { merchantIds: [small] }],
    ["ten merchants", { merchantIds: merchantIds.slice(0, 10) }],
    ["key for one merchant", { onlyMerchants: [first] }],
    ["key for 49 merchants", { onlyMerchants: others }],
    ["key for 49 merchants, 30 days", { onlyMerchants: others, from: ago(30) }],
    [
      "key for 49 merchants, from the 2nd of a month to the 30th of the next",
      { onlyMerchants: others, ...untilMonthEnd },
    ],
    ["key for 49 merchants, 30 days that end inside of a day", { onlyMerchants: others, ...last(30 * DAY_MS) }],
    ["today", { from: today }],
    ["one day", { from: ago(100), before: ago(99) }],
    ["30 days", { from: ago(130), before: ago(100) }],
    ["200 days", { from: ago(260), before: ago(60) }],
    ["10 hours inside of a day", last(10 * HOUR_MS)],
    ["7 days that end inside of a day", last(7 * DAY_MS)],
    ["30 days that end inside of a day", last(30 * DAY_MS)],
    ["200 days that end inside of a day", last(200 * DAY_MS)],
    ["one merchant, 30 days that end inside of a day", { merchantIds: [first], ...last(30 * DAY_MS) }],
    ["succeeded", { states: ["succeeded"] }],
    ["failed (2 %)", { states: ["failed"] }],
    ["processing", { states: ["processing"] }],
    ["network of 70 %", { chains: [base] }],
    ["network of 5 %", { chains: [polygon] }],
    ["network without payments", { chains: [none] }],
    [
      "network, state, merchant, 90 days",
      { chains: [polygon], states: ["succeeded"], merchantIds: [first], from: ago(90) },
    ],
    ["by amount", { sortBy: "amount" }],
    ["by amount, ascending", { sortBy: "amount", sortDir: "asc" }],
    ["by amount, cursor", { sortBy: "amount", cursor: at("5000") }],
    ["by amount, one merchant (14 %)", { sortBy: "amount", merchantIds: [first] }],
    ["by amount, one merchant (1 %)", { sortBy: "amount", merchantIds: [small] }],
    ["by amount, failed", { sortBy: "amount", states: ["failed"] }],
    ["by amount, network of 5 %", { sortBy: "amount", chains: [polygon] }],
    ["by amount, one day", { sortBy: "amount", from: ago(100), before: ago(99) }],
    ["by amount, 30 days", { sortBy: "amount", from: ago(130), before: ago(100) }],
    ["referenceId of one payment", { reference: "order-1234567" }],
    ["referenceId of 100 payments", { reference: "12345" }],
    ["referenceId of 90 %", { reference: "order" }],
    ["referenceId of no payment", { reference: "invoice" }],
    ["referenceId of one payment, one merchant", { reference: "order-1234567", merchantIds: [first] }],
    ["metadata of few payments", { metadata: { customer: "c1234" } }],
    ["metadata of 20 %", { metadata: { channel: "shop" } }],
    ["metadata of no payment", { metadata: { channel: "market" } }],
    ["metadata of 20 %, 30 days", { metadata: { channel: "shop" }, from: ago(130), before: ago(100) }],
  ];
  const all = { accountId, mode: "live", sortBy: "date", sortDir: "desc", limit: 50 } as const;
  const deps = { db, chains: new Map(), assetUnits: createAssetUnits(db) };
  return filters.map(([name, filter]) => [name, () => listPaymentViews(deps, { ...all, ...filter })]);
}

function otherLists(db: Pool, { accountId, merchantIds, endpointId }: Owner): Case[] {
  const merchantId = merchantIds[0] ?? "";
  const day = (ago: number) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
  const owner = { accountId, mode: "live", onlyMerchants: null } as const;
  const deps = { db, chains: new Map(), assetUnits: createAssetUnits(db) };
  const limit = 50;
  return [
    ["refunds", () => listRefundViews(deps, { owner, limit })],
    ["refunds of a merchant (14 %)", () => listRefundViews(deps, { owner: { ...owner, merchantId }, limit })],
    [
      "refunds, key for 49 merchants",
      () => listRefundViews(deps, { owner: { ...owner, onlyMerchants: merchantIds.slice(1) }, limit }),
    ],
    ["refunds that are held", () => listRefundViews(deps, { owner, statuses: ["held"], limit })],
    ["balances", () => readBalances(deps, { ...owner, limit })],
    [
      "statement of a merchant, a month",
      () => readStatementPage(deps, { ...owner, merchantId, from: day(130), until: day(100), limit }),
    ],
    [
      "statement of the account, a year",
      () => readStatementPage(deps, { ...owner, from: day(365), until: day(0), limit }),
    ],
    ["events", () => listEvents(deps, { ...owner, limit, payload: "full" })],
    ["latest events", () => listEvents(deps, { ...owner, start: "latest", limit, payload: "full" })],
    ["deliveries of an endpoint", () => listDeliveries(deps, { ...owner, endpointId, limit })],
    [
      "deliveries of an endpoint, given up",
      () => listDeliveries(deps, { ...owner, endpointId, state: "given_up", limit }),
    ],
    ["payments list", () => listPaymentLines(deps, { limit })],
    ["payments list --account", () => listPaymentLines(deps, { accountId, limit })],
    ["payments list --merchant", () => listPaymentLines(deps, { merchantId, limit })],
    ["payments list --state failed", () => listPaymentLines(deps, { state: "failed", limit })],
  ];
}
