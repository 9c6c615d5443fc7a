import { sql } from "kysely";
import pg from "pg";
import { expect, test } from "vitest";
import { countFindings } from "../../../../db/queries/ledger-checks.ts";
import { checkLedger, checkLedgerIfDue } from "../../../../payments/accounting/check-ledger.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { listStatements } from "../../../support/explain-statements.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

/** What one check of the ledger reads, and what it leaves to former checks. */

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { deps, db, merchantId } = fixture;
const { asset } = chain;

const paid = await fixture.pay(await fundBuyer(chain), 500n);
const paidId = (await fixture.settlementOf(paid)).id;
await fixture.settle(paidId);
await fixture.relay();
await fixture.watch();

/** Writes as the database's superuser, past every trigger and constraint. */
const plant = (...statements: string[]) =>
  db.transaction().execute(async (own) => {
    await sql`set local session_replication_role = replica`.execute(own);
    for (const statement of statements) await sql.raw(statement).execute(own);
  });

async function checkLater(): Promise<Record<string, number>> {
  fixture.clock.advance(3_600_000);
  await checkLedgerIfDue(deps);
  return Object.fromEntries((await countFindings(db)).map(({ kind, count }) => [kind, count]));
}

test("a payout is read by the checks after its payment, and not by later ones", async () => {
  const isRead = async () => {
    const statements = await listStatements(checkLater);
    expect(statements.length).toBeGreaterThan(5);
    return statements.some(({ values }) => JSON.stringify(values).includes(paidId));
  };
  expect(await isRead()).toBe(true);
  expect(await isRead()).toBe(false);
});

test("a payout that was found wrong stays found until it is repaired", async () => {
  const change = (by: number) => plant(`update settlement set amount = amount + ${by} where id = '${paidId}'`);
  await change(1);
  await plant(`update settlement set paid_at = '${deps.now().toISOString()}' where id = '${paidId}'`);
  const wrong = { settlement_differs: 1, settlement_unbooked: 1 };
  for (let hour = 0; hour < 3; hour++) expect(await checkLater()).toMatchObject(wrong);
  await change(-1);
  expect(await checkLater()).toEqual({});
  await plant(`update transfer set amount = amount + 1, state = 'ready' where settlement_id = '${paidId}'`);
  expect(await checkLater()).toEqual({ transfer_differs: 1 });
  await plant(`update transfer set state = 'confirmed' where settlement_id = '${paidId}'`);
  for (let hour = 0; hour < 3; hour++) expect(await checkLater()).toEqual({ transfer_differs: 1 });
  await plant(`update transfer set amount = amount - 1 where settlement_id = '${paidId}'`);
  expect(await checkLater()).toEqual({});
});

test("a payout that was paid days before the last check of a stopped fleet is read by the next check", async () => {
  const at = deps.now().getTime();
  const daysAgo = (days: number) => new Date(at - days * 24 * 3_600_000).toISOString();
  await plant(
    `update ledger_check set checked_at = '${daysAgo(3)}'`,
    `update settlement set amount = amount + 1, paid_at = '${daysAgo(2.9)}' where id = '${paidId}'`,
  );
  expect(await checkLater()).toMatchObject({ settlement_differs: 1 });
  await plant(`update settlement set amount = amount - 1 where id = '${paidId}'`);
  expect(await checkLater()).toEqual({});
});

test("a ledger group that does not sum to zero stays found after its day", async () => {
  const at = deps.now().toISOString();
  await plant(
    `insert into ledger_group (kind, subject, at) values ('correction', 'half of two', '${at}')`,
    `insert into ledger_entry (group_id, account, asset, amount)
      select id, 'losses', '${asset}', 3 from ledger_group where subject = 'half of two'`,
  );
  const wrong = { group_unbalanced: 1, day_differs: 1 };
  for (let hour = 0; hour < 3; hour += 1) {
    expect(await checkLater()).toEqual(wrong);
    fixture.clock.advance(25 * 3_600_000);
  }
  await plant(
    "delete from ledger_entry where group_id in (select id from ledger_group where subject = 'half of two')",
    "delete from ledger_group where subject = 'half of two'",
  );
  expect(await checkLater()).toEqual({});
});

const PAYMENTS = 12_000;

/** A payout that waits for the payments of months, and the bookings of each. */
const large = `
  with given as (select n, 'pay_large_' || lpad(n::text, 6, '0') as payment, 'trf_large_' || n as transfer from generate_series(1, ${PAYMENTS}) n),
  settled as (
    insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
    values ('stl_large', '${merchantId}', 'live', '${asset}', 900, ${PAYMENTS} * 10000, 'accumulating', now(), now())
  ), paid as (
    insert into payment (id, account_id, merchant_id, mode, unit, value, state, tx_id, paid_asset, paid_amount,
      settlement_id, created_at, updated_at, expires_at)
    select payment, '${fixture.accountId}', '${merchantId}', 'live', 'iso4217/USD', 1, 'succeeded', '0x1', '${asset}', 10000,
      'stl_large', now(), now(), now() from given
  ), transferred as (
    insert into transfer (id, purpose, payment_id, chain, asset, token, payer, receiver, amount, authorization_nonce,
      valid_before, state, created_at)
    select transfer, 'payment', payment, '${chain.id}', '${asset}', '0x0', '0x0', '0x0', 10000, transfer, 1, 'confirmed', now()
    from given
  ), booked as (
    insert into ledger_group (kind, subject, at) select 'payment', transfer, now() from given returning id
  ), entries as (
    insert into ledger_entry (group_id, account, asset, amount)
    select id, account, '${asset}', amount from booked, (values ('treasury', 10000), ('payable:${merchantId}', -10000)) v (account, amount)
    returning account, asset, amount
  ), balanced as (
    update merchant_balance set amount = amount + ${PAYMENTS} * 10000 where merchant_id = '${merchantId}'
  )
  insert into ledger_day (account, asset, day, shard, amount)
  select account, asset, ledger_day_of(now()), 99, sum(amount) from entries group by 1, 2`;

/** Returns the number of payments that the statement reads. */
async function countPaymentsRead(client: pg.Client, { text, values }: { text: string; values: readonly unknown[] }) {
  type Plan = { "Relation Name"?: string; "Actual Rows": number; "Actual Loops": number; Plans?: Plan[] };
  const { rows } = await client.query({ text: `explain (analyze, format json) ${text}`, values: [...values] });
  const count = (plan: Plan): number =>
    (plan["Relation Name"] === "payment" ? plan["Actual Rows"] * plan["Actual Loops"] : 0) +
    (plan.Plans ?? []).reduce((sum, one) => sum + count(one), 0);
  const [{ Plan: root }] = rows[0]["QUERY PLAN"] as [{ Plan: Plan }];
  return count(root);
}

test("a payout of many payments is compared by statements that each read a part of them", async () => {
  const client = new pg.Client({ connectionString: fixture.databaseUrl });
  addCleanup(() => client.end());
  await client.connect();
  await plant(large);
  await sql`analyze payment, settlement, transfer, ledger_group`.execute(db);
  const statements = await listStatements(async () => {
    expect(await checkLedger(db, { since: undefined })).toEqual([]);
  });
  const reads = statements.filter(({ text }) => /^\s*(select|with)/.test(text));
  const counts = [];
  for (const statement of reads) counts.push(await countPaymentsRead(client, statement));
  expect(Math.max(...counts)).toBeGreaterThan(1_000);
  expect(Math.max(...counts)).toBeLessThanOrEqual(6_000);
  await plant(`update payment set paid_amount = paid_amount - 1 where id in ('pay_large_000007', 'pay_large_011999')`);
  expect(await checkLedger(db, { since: undefined })).toMatchObject([
    { kind: "settlement_differs", subject: "stl_large", found: "120000000", expected: "119999998" },
  ]);
});
