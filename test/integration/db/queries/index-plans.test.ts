import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { takeDue, takeDueTransfers } from "../../../../db/due.ts";
import { openDb } from "../../../../db/open.ts";
import { listClaimable } from "../../../../db/queries/claim-transfers.ts";
import { listConfirmable } from "../../../../db/queries/confirmable-transfers.ts";
import { listOpenExceptions } from "../../../../db/queries/exceptions.ts";
import { listOldestOverdue } from "../../../../db/queries/gauges.ts";
import {
  countOpenExceptions,
  countOpenRefunds,
  findOldestUnfinishedPayment,
} from "../../../../db/queries/money-gauges.ts";
import { lockPaidQuotes } from "../../../../db/queries/payment-options.ts";
import { listPaymentsNamed } from "../../../../db/queries/payment-references.ts";
import { listPaymentsOfPayer } from "../../../../db/queries/payment-search.ts";
import { listNewestPayments } from "../../../../db/queries/payments.ts";
import { listUnclaimedPayouts, listUnresolvedPayouts } from "../../../../db/queries/payout-nonces.ts";
import { listCustomersAmong, listPaymentsOfCustomers } from "../../../../db/queries/possible-refunds.ts";
import { listStatementRows } from "../../../../db/queries/statement-lines.ts";
import { lockByAuthorizations } from "../../../../db/queries/transfers.ts";
import { listUnfinishedWork } from "../../../../db/queries/unfinished-work.ts";
import { listUnmatched, lockOrphanedBookings } from "../../../../db/queries/unmatched-movements.ts";
import { takeDueEndpoints } from "../../../../db/queries/webhook-endpoints.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import { createAssetUnits } from "../../../../payments/asset-units.ts";
import { newId } from "../../../../payments/ids.ts";
import { listPaymentViews } from "../../../../payments/lifecycle/list-payments.ts";
import { cleanUp } from "../../../../payments/maintenance/clean-up.ts";
import { readPaymentReport } from "../../../../payments/maintenance/payment-report.ts";
import { generateHistory } from "../../../bench/history/generate-history.ts";
import { type Shop, writePayments } from "../../../bench/history/write-payments.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { captureStatements, listScannedTables } from "../../../support/explain-statements.ts";
import { createDatabase } from "../../../support/test-database.ts";

/** Tables that grow with every payment. No statement may read all of one. */
const growing = new Set([
  "payment",
  "payment_option",
  "attempt",
  "transfer",
  "transaction",
  "observation",
  "event",
  "webhook_event",
  "webhook_delivery",
  "webhook_attempt",
  "ledger_group",
  "ledger_entry",
  "idempotency",
  "summed_payment",
]);

const url = await createDatabase();
const db = openDb(url, { max: 1 });
const client = new pg.Client({ connectionString: url });
const now = new Date();
let shop: Shop;
let paymentId: string;

/** Responses of a day, as a busy account leaves them. */
const insertResponses = `
  insert into idempotency (account_id, mode, merchant_id, operation, key, digest, status, response_body, created_at)
  select id, 'live', '', 'createPayment', n::text, '', 201, '{}', now() - n * interval '1 second'
  from (select id from account limit 1) a, generate_series(1, 20000) n`;

beforeAll(async () => {
  await generateHistory(url, { payments: 10_000, days: 60 });
  await client.connect();
  await client.query(insertResponses);
  await client.query("analyze idempotency");
  addCleanup(() => client.end());
  addCleanup(() => db.destroy());
  const found = await client.query<Shop & { id: string }>(`
    select p.id, p.account_id as "accountId", p.merchant_id as "merchantId", e.id as "endpointId", l.id as "laneId",
      l.chain, t.asset, t.token
    from payment p join transfer t on t.payment_id = p.id join lane l on l.chain = t.chain
    join webhook_endpoint e on e.account_id = p.account_id where p.state = 'succeeded' limit 1`);
  const [row] = found.rows;
  if (!row) throw new Error("no payment has succeeded");
  ({ id: paymentId, ...shop } = row);
});

/** Expects that no statement which the work sends reads all of a table that grows with every payment. */
async function expectIndexPlans(work: () => Promise<unknown>): Promise<void> {
  const statements = (await captureStatements(work)).filter(({ text }) =>
    /^\s*(with|select|insert|update|delete)\b/i.test(text),
  );
  expect(statements).not.toEqual([]);
  const scans = new Map<string, string[]>();
  for (const statement of statements) {
    const tables = (await listScannedTables(client, statement)).filter((table) => growing.has(table));
    if (tables.length > 0) scans.set(statement.text, tables);
  }
  expect(Object.fromEntries(scans)).toEqual({});
}

test("a payment reads all of no table that grows, from its creation to its webhooks", async () => {
  await expectIndexPlans(() =>
    writePayments(db, { shop, makeId: newId, count: 4, nonce: 1_000_000, block: 2_000_000_000 }),
  );
});

test("the sweep, the watchers and the gauges read all of no table that grows", async () => {
  const { chain } = shop;
  const due = { now, limit: 500 };
  await expectIndexPlans(async () => {
    await takeDue(db, { table: "payment", ...due });
    await takeDue(db, { table: "attempt", ...due });
    await takeDueTransfers(db, { chains: [chain], ...due });
    await takeDueEndpoints(db, { ...due, retryAt: now });
    await listConfirmable(db, { chain, upTo: 2_000_000_000, limit: 100 });
    await listUnmatched(db, { chain, upTo: 2_000_000_000, limit: 100 });
    await lockOrphanedBookings(db, { chain, hashes: [`0x${"ab".repeat(32)}`] });
    const [nonce, account] = [`0x${"ab".repeat(32)}`, `0x${"ab".repeat(20)}`];
    const money = { authorization_nonce: nonce, token: account, payer: account, receiver: account, amount: 1n };
    await lockPaidQuotes(db, { chain, money: [money] });
    await lockByAuthorizations(db, { chain, nonces: [nonce] });
    await listOldestOverdue(db, { chains: [chain], now });
    await countOpenExceptions(db);
    await countOpenRefunds(db);
    await findOldestUnfinishedPayment(db);
  });
});

test("the search for payouts that a restored database has lost reads all of no table that grows", async () => {
  const accounts = [{ chain: shop.chain, payer: `0x${"ab".repeat(20)}` }];
  const merchantIds = [shop.merchantId];
  const { rows } = await client.query<{ payer: string }>(
    "select o.payer from payment p join payment_option o on o.id = p.option_id where p.id = $1",
    [paymentId],
  );
  const payers = rows.map(({ payer }) => payer);
  await expectIndexPlans(async () => {
    await listUnclaimedPayouts(db, accounts);
    await listUnresolvedPayouts(db, accounts);
    expect(await listCustomersAmong(db, { merchantIds, addresses: payers })).toEqual(payers);
    expect(await listPaymentsOfCustomers(db, { merchantIds, payers })).not.toEqual([]);
  });
});

test("the clean-up deletes what is old without reading all of a table", async () => {
  const later = { db, now: () => new Date(now.getTime() + 2 * 86_400_000) };
  await expectIndexPlans(async () => expect((await cleanUp(later)).answers).toBeGreaterThanOrEqual(5_000));
});

test("operators' lists, reports and checks read all of no table that grows", async () => {
  const { accountId, merchantId } = shop;
  const since = new Date(now.getTime() - 3_600_000);
  await expectIndexPlans(async () => {
    for (const filter of [
      {},
      { accountId },
      { merchantId },
      { since },
      { accountId, merchantId },
      { ids: [paymentId] },
    ])
      await listNewestPayments(db, { ...filter, limit: 50 });
    await listOpenExceptions(db, { limit: 100 });
    for (const text of [paymentId, "order 1", "Shop", `0x${"ab".repeat(32)}`]) await listPaymentsNamed(db, text, 50);
    await listPaymentsOfPayer(db, { payers: [`0x${"ab".repeat(20)}`], limit: 50 });
    await readPaymentReport({ db }, paymentId);
    await listUnfinishedWork(db, { before: since, now, limit: 200 });
    await checkLedger(db, { since, paidSince: since });
  });
});

test("a list of payments and its totals read all of no table", async () => {
  const { accountId, merchantId } = shop;
  const all = { accountId, mode: "live", sortBy: "date", sortDir: "desc", limit: 50 } as const;
  const hours = { from: new Date(now.getTime() - 40 * 3_600_000), before: new Date(now.getTime() - 30 * 3_600_000) };
  await expectIndexPlans(async () => {
    for (const filter of [
      {},
      { merchantIds: [merchantId] },
      hours,
      { chains: [shop.chain] },
      { states: ["failed"] as const },
      { reference: "order-4711" },
    ])
      await listPaymentViews({ db, chains: new Map(), assetUnits: createAssetUnits(db) }, { ...all, ...filter });
  });
});

test("a search for a reference looks it up in the index of trigrams", async () => {
  const all = { accountId: shop.accountId, mode: "live", sortBy: "date", sortDir: "desc", limit: 50 } as const;
  const statements = await captureStatements(() =>
    listPaymentViews({ db, chains: new Map(), assetUnits: createAssetUnits(db) }, { ...all, reference: "order-4711" }),
  );
  const searches = statements.filter(({ text }) => text.includes("summed_payment"));
  expect(searches.length).toBeGreaterThan(0);
  for (const { text, values } of searches) {
    const { rows } = await client.query({ text: `explain ${text}`, values: [...values] });
    expect(rows.map((row) => row["QUERY PLAN"]).join("\n")).toContain("Bitmap Index Scan on summed_payment_texts");
  }
});

test("a page of a statement reads all of no table", async () => {
  const day = (ago: number) => new Date(now.getTime() - ago * 86_400_000).toISOString().slice(0, 10);
  const period = { account: `payable:${shop.merchantId}`, asset: shop.asset, from: day(10), until: day(3) };
  await expectIndexPlans(() => listStatementRows(db, { ...period, after: 0, limit: 100 }));
});

test("a lane takes the oldest of a sudden backlog by the index, before the statistics know of it", async () => {
  await client.query(
    `insert into transfer (id, purpose, kind, chain, asset, token, payer, receiver, amount, authorization_nonce, valid_before,
       state, created_at)
     select 'trf_' || md5(n::text), 'cold', 'eip3009', $1, $2, $3, '0x' || lpad(n::text, 40, '0'), '0x' || repeat('c', 40), 1,
       '0x' || lpad(n::text, 64, '0'), 1, 'ready', now()
     from generate_series(1, 5000) n`,
    [shop.chain, shop.asset, shop.token],
  );
  const claim = {
    chain: shop.chain,
    laneId: shop.laneId,
    kinds: ["eip3009"] as const,
    now,
    limit: 30,
    mostInclusions: 3,
  };
  const sent = await captureStatements(() => listClaimable(db, claim));
  const statement = sent.find(({ text }) => text.includes("from transfer t"));
  const { rows } = await client.query({
    text: `explain (analyze, timing off) ${statement?.text}`,
    values: [...(statement?.values ?? [])],
  });
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toContain("transfer_ready");
  // Payers with a failed transfer are looked up in a hash: a search of an array would take longer with each of them, for each transfer.
  expect(plan).toContain("NOT (hashed SubPlan");
  expect(plan).not.toContain("Sort");
});
