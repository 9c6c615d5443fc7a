import { expect, test } from "vitest";
import { chooseNotBegun } from "../../../db/queries/settlements.ts";
import { isTransient } from "../../../payments/is-transient.ts";
import { dispatchSettlements } from "../../../payments/payouts/dispatch-payouts.ts";
import { holdPayouts } from "../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { adminIn } from "../../support/admin.ts";
import { fundBuyer, fundBuyers, startChain } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { readSystemStatus } from "../../support/read-system-status.ts";
import { testActor } from "../../support/test-actor.ts";
import { createDatabase } from "../../support/test-database.ts";

const chain = await startChain();
const signal = new AbortController().signal;

/** Inserts settlements that have been due for ten minutes, and the balance that covers them. */
async function addSettlements(fixture: MerchantFixture, count: number): Promise<void> {
  await execute(
    fixture.databaseUrl,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, closed_at, due_at)
      select 'stl_' || md5('${fixture.merchantId}' || n), '${fixture.merchantId}', 'live', '${chain.asset}', n, 1, 'due',
        now() - interval '10 minutes', now() - interval '10 minutes', now() - interval '10 minutes'
      from generate_series(1, ${count}) n`,
    `insert into merchant_balance (merchant_id, asset, amount, next_settlement)
      values ('${fixture.merchantId}', '${chain.asset}', ${count}, ${count + 1})`,
    "analyze settlement",
  );
}

const countDue = async (fixture: MerchantFixture) =>
  Number(
    (
      await fixture.db
        .selectFrom("settlement")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("merchant_id", "=", fixture.merchantId)
        .where("state", "=", "due")
        .executeTakeFirstOrThrow()
    ).count,
  );

/**
 * Sweeps once with the watcher at the head, runs every settle job that was enqueued and returns the jobs' settlements.
 */
async function sweepAndSettle(fixture: MerchantFixture, at: number): Promise<string[][]> {
  const handlers = createHandlers({ ...fixture.deps, isTransient });
  await fixture.watch();
  const before = fixture.enqueued.length;
  await handlers.sweep({ at }, signal);
  const jobs = fixture.enqueued
    .slice(before)
    .filter(({ queue }) => queue === "settle")
    .map(({ job }) => job.data as { settlementIds: [string, ...string[]] });
  for (const job of jobs) await handlers.settle(job, signal);
  return jobs.map(({ settlementIds }) => settlementIds);
}

test("20,000 settlements without a destination enqueue nothing, delay no other merchant, and are paid once there is one", async () => {
  const fixture = await makeMerchantFixture(chain);
  const blocked = await makeMerchantFixture(chain, {
    databaseUrl: fixture.databaseUrl,
    clock: fixture.clock,
    settles: false,
  });
  await addSettlements(blocked, 20_000);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  fixture.clock.advance(5_000);

  await sweepAndSettle(fixture, 1);
  expect((await fixture.settlementOf(paymentId)).state).toBe("paying");
  const jobs: number[] = [];
  for (let sweep = 1; sweep <= 20; sweep += 1) {
    fixture.clock.advance(10_000);
    jobs.push((await sweepAndSettle(fixture, 1 + sweep)).length);
  }
  expect(jobs).toEqual(Array(20).fill(0));
  expect(await countDue(blocked)).toBe(20_000);

  await blocked.addDestination();
  const sizes: number[] = [];
  for (let sweep = 1; sweep <= 5; sweep += 1) {
    fixture.clock.advance(1_000);
    for (const ids of await sweepAndSettle(fixture, 100 + sweep)) sizes.push(ids.length);
  }
  // They are paid in bounded parts, one after another.
  expect(await countDue(blocked)).toBe(20_000 - sizes.reduce((sum, size) => sum + size, 0));
  expect(sizes.length).toBe(5);
  expect(Math.max(...sizes)).toBe(100);
});

const queueOf = (fixture: MerchantFixture, kind: "settlement" | "refund" = "settlement") =>
  fixture.db
    .selectFrom("payout_queue")
    .select(["blocked_by", "due_at"])
    .where("kind", "=", kind)
    .where("merchant_id", "=", fixture.merchantId)
    .executeTakeFirstOrThrow();

test("a destination that is registered while its payouts find none never leaves them blocked", async () => {
  const databaseUrl = await createDatabase();
  for (let round = 0; round < 12; round += 1) {
    const fixture = await makeMerchantFixture(chain, { databaseUrl, settles: false });
    await addSettlements(fixture, 3);
    await fixture.watch();
    const ids = await fixture.db
      .selectFrom("settlement")
      .select("id")
      .where("merchant_id", "=", fixture.merchantId)
      .execute();
    await Promise.all([
      dispatchSettlements(
        fixture.deps,
        ids.map(({ id }) => id),
      ),
      fixture.addDestination(),
    ]);
    expect((await queueOf(fixture)).blocked_by).toBeNull();
    fixture.clock.advance(10_000);
    await sweepAndSettle(fixture, round);
    expect(await countDue(fixture)).toBe(0);
    fixture.clock.advance(-10_000);
  }
});

test("a payment of a held merchant enqueues no payout, and the release pays everything out", async () => {
  const fixture = await makeMerchantFixture(chain);
  const owner = { accountId: fixture.accountId, merchantId: fixture.merchantId, mode: fixture.mode };
  await addSettlements(fixture, 250);
  unwrap(await holdPayouts(fixture.deps, { actor: testActor, ...owner, hold: true }));
  fixture.clock.advance(5_000);
  await sweepAndSettle(fixture, 1);
  expect(await queueOf(fixture)).toMatchObject({ blocked_by: "held" });
  const enqueued = fixture.enqueued.length;
  const paymentId = await fixture.pay(await fundBuyer(chain));
  expect(fixture.enqueued.slice(enqueued).filter(({ queue }) => queue === "settle")).toEqual([]);
  unwrap(await holdPayouts(fixture.deps, { actor: testActor, ...owner, hold: false }));
  fixture.clock.advance(5_000);
  for (let sweep = 2; sweep <= 5; sweep += 1) {
    await sweepAndSettle(fixture, sweep);
    fixture.clock.advance(1_000);
  }
  expect(await countDue(fixture)).toBe(0);
  expect((await fixture.settlementOf(paymentId)).state).toBe("paying");
  // Nothing is left to do, and nothing is enqueued.
  fixture.clock.advance(60_000);
  expect(await sweepAndSettle(fixture, 6)).toEqual([]);
});

test("a refund that its merchant cannot cover waits without jobs, and so do the payouts behind it", async () => {
  const fixture = await makeMerchantFixture(chain);
  const [first, second, third] = await fundBuyers(chain, 3);
  if (!first || !second || !third) throw new Error("no buyers");
  const handlers = createHandlers({ ...fixture.deps, isTransient });
  const refundJobs = async () => {
    const before = fixture.enqueued.length;
    await sweepAndSettle(fixture, 1);
    const jobs = fixture.enqueued.slice(before).filter(({ queue }) => queue === "refund");
    for (const { job } of jobs) await handlers.refund(job.data as { refundIds: [string] }, signal);
    return jobs.length;
  };
  const paid = await fixture.pay(first, 300n);
  await fixture.settle((await fixture.settlementOf(paid)).id);
  await fixture.relay();
  await fixture.watch();
  unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId: paid, mode: "live" }));
  const small = await fixture.pay(second, 100n);
  fixture.clock.advance(5_000);
  await refundJobs();
  fixture.clock.advance(5_000);
  await refundJobs();
  expect(await queueOf(fixture, "refund")).toMatchObject({ blocked_by: "balance_short" });
  expect(await queueOf(fixture)).toMatchObject({ blocked_by: "refund_pending" });
  for (let sweep = 0; sweep < 5; sweep += 1) {
    fixture.clock.advance(20_000);
    expect(await refundJobs()).toBe(0);
  }
  await fixture.pay(third, 500n);
  fixture.clock.advance(5_000);
  expect(await refundJobs()).toBe(1);
  expect(await fixture.settlementOf(small)).toMatchObject({ state: "netted" });
  expect(await queueOf(fixture)).toMatchObject({ blocked_by: null });
  await refundJobs();
  expect(await countDue(fixture)).toBe(0);
});

test("a refund reads only the settlements that it draws on, however many its merchant has", async () => {
  const fixture = await makeMerchantFixture(chain);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { id: own } = await fixture.settlementOf(paymentId);
  const of = { merchantId: fixture.merchantId, asset: chain.asset, converted: false };
  await fixture.db.deleteFrom("merchant_balance").where("merchant_id", "=", fixture.merchantId).execute();
  await fixture.db.updateTable("settlement").set({ number: 5_001 }).where("id", "=", own).execute();
  await addSettlements(fixture, 5_000);
  const numbers = async (amount: bigint) =>
    (await chooseNotBegun(fixture.db, { ...of, own, amount })).map(({ number }) => number);
  expect(await numbers(1_000_000n)).toEqual([5_001]);
  expect(await numbers(1_000_150n)).toEqual([5_001, ...Array.from({ length: 150 }, (_one, index) => index + 1)]);
  expect(await numbers(9_999_999n)).toHaveLength(5_001);
});

test("operators see blocked payouts by merchant, on the payment and in the metrics", async () => {
  const fixture = await makeMerchantFixture(chain, { settles: false });
  const admin = adminIn({ DATABASE_URL: fixture.databaseUrl });
  await fixture.addDestination();
  const paymentId = await fixture.pay(await fundBuyer(chain));
  await fixture.db.deleteFrom("settlement_destination").where("merchant_id", "=", fixture.merchantId).execute();
  fixture.clock.advance(5_000);
  await sweepAndSettle(fixture, 1);
  const blocked = JSON.parse((await admin("payouts", "blocked", "--json")).stdout);
  expect(blocked).toMatchObject([
    { kind: "settlement", merchantId: fixture.merchantId, asset: chain.asset, blockedBy: "no_destination", waiting: 1 },
  ]);
  expect((await admin("payments", "show", paymentId)).stdout).toContain("no_destination");
  const system = await readSystemStatus(fixture.deps);
  expect(system.blocked).toContainEqual({ kind: "settlement", obstacle: "no_destination", count: 1 });
  fixture.clock.advance(3_600_000);
  // It has an alert of its own, and would hide a payout that waits for the service.
  expect((await readSystemStatus(fixture.deps)).overdue).toContainEqual({ queue: "settle", seconds: 0 });
  fixture.clock.advance(-3_600_000);
  expect((await admin("payments", "retry", paymentId)).stdout).toContain("1 settlements due now");
  expect(await queueOf(fixture)).toMatchObject({ blocked_by: null });
  expect(await sweepAndSettle(fixture, 2)).toHaveLength(1);
  expect((await admin("payouts", "blocked", "--limit", "0")).code).toBe(2);
});

test("a settlement that cannot be written delays none of the merchant's others, however many are due", async () => {
  const fixture = await makeMerchantFixture(chain);
  await addSettlements(fixture, 250);
  const { id } = await fixture.db.selectFrom("settlement").select("id").orderBy("id").executeTakeFirstOrThrow();
  await execute(
    fixture.databaseUrl,
    // It is the first of each batch.
    `update settlement set due_at = due_at - interval '1 minute' where id = '${id}'`,
    "create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$",
    `create trigger refuse before insert on transfer for each row when (new.settlement_id = '${id}') execute function refuse()`,
  );
  fixture.clock.advance(5_000);
  const left: number[] = [];
  for (let sweep = 1; sweep <= 3; sweep += 1) {
    await expect(sweepAndSettle(fixture, sweep)).rejects.toThrow("refused");
    left.push(await countDue(fixture));
    fixture.clock.advance(1_000);
  }
  expect(left).toEqual([151, 52, 1]);
});
