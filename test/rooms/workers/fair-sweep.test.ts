import { expect, test } from "vitest";
import { isTransientChainError } from "../../../chains/faults.ts";
import { chooseUnbegun } from "../../../db/settlements.ts";
import { readSystem } from "../../../payments/gauges.ts";
import { holdPayouts } from "../../../payments/payout-policies.ts";
import { payOut } from "../../../payments/payout-queue.ts";
import { refundPayment } from "../../../payments/refund.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { createJudge } from "../../../workers/trouble.ts";
import { adminIn } from "../../support/admin.ts";
import { fundBuyer, fundBuyers, startChain } from "../../support/chain.ts";
import { createDatabase } from "../../support/database.ts";
import { execute } from "../../support/sql.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();
const signal = new AbortController().signal;

/** Inserts settlements that have been due for ten minutes, and the balance that covers them. */
async function addSettlements(till: Till, count: number): Promise<void> {
  await execute(
    till.databaseUrl,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, closed_at, due_at)
      select 'stl_' || md5('${till.merchantId}' || n), '${till.merchantId}', 'live', '${chain.asset}', n, 1, 'due',
        now() - interval '10 minutes', now() - interval '10 minutes', now() - interval '10 minutes'
      from generate_series(1, ${count}) n`,
    `insert into merchant_balance (merchant_id, asset, amount, next_settlement)
      values ('${till.merchantId}', '${chain.asset}', ${count}, ${count + 1})`,
    "analyze settlement",
  );
}

const countDue = async (till: Till) =>
  Number(
    (
      await till.db
        .selectFrom("settlement")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("merchant_id", "=", till.merchantId)
        .where("state", "=", "due")
        .executeTakeFirstOrThrow()
    ).count,
  );

/**
 * Sweeps once with the watcher at the head, runs every settle job that was enqueued and returns the jobs' settlements.
 */
async function sweepAndSettle(till: Till, at: number): Promise<string[][]> {
  const handlers = createHandlers({ ...till.deps, isTransient: createJudge(isTransientChainError) });
  await till.watch();
  const before = till.rung.length;
  await handlers.sweep({ at }, signal);
  const jobs = till.rung
    .slice(before)
    .filter(({ queue }) => queue === "settle")
    .map(({ bell }) => bell.data as { settlementIds: [string, ...string[]] });
  for (const job of jobs) await handlers.settle(job, signal);
  return jobs.map(({ settlementIds }) => settlementIds);
}

test("20,000 settlements without a destination enqueue nothing, delay no other merchant, and are paid once there is one", async () => {
  const till = await makeTill(chain);
  const blocked = await makeTill(chain, { databaseUrl: till.databaseUrl, clock: till.clock, settles: false });
  await addSettlements(blocked, 20_000);
  const paymentId = await till.pay(await fundBuyer(chain));
  till.clock.advance(5_000);

  await sweepAndSettle(till, 1);
  expect((await till.settlementOf(paymentId)).state).toBe("paying");
  const jobs: number[] = [];
  for (let sweep = 1; sweep <= 20; sweep += 1) {
    till.clock.advance(10_000);
    jobs.push((await sweepAndSettle(till, 1 + sweep)).length);
  }
  expect(jobs).toEqual(Array(20).fill(0));
  expect(await countDue(blocked)).toBe(20_000);

  await blocked.addDestination();
  const sizes: number[] = [];
  for (let sweep = 1; sweep <= 5; sweep += 1) {
    till.clock.advance(1_000);
    for (const ids of await sweepAndSettle(till, 100 + sweep)) sizes.push(ids.length);
  }
  // They are paid in bounded parts, one after another.
  expect(await countDue(blocked)).toBe(20_000 - sizes.reduce((sum, size) => sum + size, 0));
  expect(sizes.length).toBe(5);
  expect(Math.max(...sizes)).toBe(100);
});

const queueOf = (till: Till, kind: "settlement" | "refund" = "settlement") =>
  till.db
    .selectFrom("payout_queue")
    .select(["blocked_by", "due_at"])
    .where("kind", "=", kind)
    .where("merchant_id", "=", till.merchantId)
    .executeTakeFirstOrThrow();

test("a destination that is registered while its payouts find none never leaves them blocked", async () => {
  const databaseUrl = await createDatabase();
  for (let round = 0; round < 12; round += 1) {
    const till = await makeTill(chain, { databaseUrl, settles: false });
    await addSettlements(till, 3);
    await till.watch();
    const ids = await till.db
      .selectFrom("settlement")
      .select("id")
      .where("merchant_id", "=", till.merchantId)
      .execute();
    await Promise.all([
      payOut(
        till.deps,
        ids.map(({ id }) => id),
      ),
      till.addDestination(),
    ]);
    expect((await queueOf(till)).blocked_by).toBeNull();
    till.clock.advance(10_000);
    await sweepAndSettle(till, round);
    expect(await countDue(till)).toBe(0);
    till.clock.advance(-10_000);
  }
});

test("a payment of a held merchant enqueues no payout, and the release pays everything out", async () => {
  const till = await makeTill(chain);
  const owner = { accountId: till.accountId, merchantId: till.merchantId, mode: till.mode };
  await addSettlements(till, 250);
  good(await holdPayouts(till.deps, { ...owner, hold: true }));
  till.clock.advance(5_000);
  await sweepAndSettle(till, 1);
  expect(await queueOf(till)).toMatchObject({ blocked_by: "held" });
  const rung = till.rung.length;
  const paymentId = await till.pay(await fundBuyer(chain));
  expect(till.rung.slice(rung).filter(({ queue }) => queue === "settle")).toEqual([]);
  good(await holdPayouts(till.deps, { ...owner, hold: false }));
  till.clock.advance(5_000);
  for (let sweep = 2; sweep <= 5; sweep += 1) {
    await sweepAndSettle(till, sweep);
    till.clock.advance(1_000);
  }
  expect(await countDue(till)).toBe(0);
  expect((await till.settlementOf(paymentId)).state).toBe("paying");
  // Nothing is left to do, and nothing is enqueued.
  till.clock.advance(60_000);
  expect(await sweepAndSettle(till, 6)).toEqual([]);
});

test("a refund that its merchant cannot cover waits without jobs, and so do the payouts behind it", async () => {
  const till = await makeTill(chain);
  const [first, second, third] = await fundBuyers(chain, 3);
  if (!first || !second || !third) throw new Error("no buyers");
  const handlers = createHandlers({ ...till.deps, isTransient: createJudge(isTransientChainError) });
  const refundJobs = async () => {
    const before = till.rung.length;
    await sweepAndSettle(till, 1);
    const jobs = till.rung.slice(before).filter(({ queue }) => queue === "refund");
    for (const { bell } of jobs) await handlers.refund(bell.data as { refundIds: [string] }, signal);
    return jobs.length;
  };
  const paid = await till.pay(first, 300n);
  await till.settle((await till.settlementOf(paid)).id);
  await till.relay();
  await till.watch();
  good(await refundPayment(till.deps, { paymentId: paid, mode: "live" }));
  const small = await till.pay(second, 100n);
  till.clock.advance(5_000);
  await refundJobs();
  till.clock.advance(5_000);
  await refundJobs();
  expect(await queueOf(till, "refund")).toMatchObject({ blocked_by: "balance_short" });
  expect(await queueOf(till)).toMatchObject({ blocked_by: "refund_waits" });
  for (let sweep = 0; sweep < 5; sweep += 1) {
    till.clock.advance(20_000);
    expect(await refundJobs()).toBe(0);
  }
  await till.pay(third, 500n);
  till.clock.advance(5_000);
  expect(await refundJobs()).toBe(1);
  expect(await till.settlementOf(small)).toMatchObject({ state: "netted" });
  expect(await queueOf(till)).toMatchObject({ blocked_by: null });
  await refundJobs();
  expect(await countDue(till)).toBe(0);
});

test("a refund reads only the settlements that it draws on, however many its merchant has", async () => {
  const till = await makeTill(chain);
  const paymentId = await till.pay(await fundBuyer(chain));
  const { id: own } = await till.settlementOf(paymentId);
  const of = { merchantId: till.merchantId, asset: chain.asset };
  await till.db.deleteFrom("merchant_balance").where("merchant_id", "=", till.merchantId).execute();
  await till.db.updateTable("settlement").set({ number: 5_001 }).where("id", "=", own).execute();
  await addSettlements(till, 5_000);
  const numbers = async (amount: bigint) =>
    (await chooseUnbegun(till.db, { ...of, own, amount })).map(({ number }) => number);
  expect(await numbers(1_000_000n)).toEqual([5_001]);
  expect(await numbers(1_000_150n)).toEqual([5_001, ...Array.from({ length: 150 }, (_one, index) => index + 1)]);
  expect(await numbers(9_999_999n)).toHaveLength(5_001);
});

test("operators see blocked payouts by merchant, on the payment and in the metrics", async () => {
  const till = await makeTill(chain, { settles: false });
  const admin = adminIn({ DATABASE_URL: till.databaseUrl });
  await till.addDestination();
  const paymentId = await till.pay(await fundBuyer(chain));
  await till.db.deleteFrom("settlement_destination").where("merchant_id", "=", till.merchantId).execute();
  till.clock.advance(5_000);
  await sweepAndSettle(till, 1);
  const blocked = JSON.parse((await admin("payouts", "blocked", "--json")).stdout);
  expect(blocked).toMatchObject([
    { kind: "settlement", merchantId: till.merchantId, asset: chain.asset, blockedBy: "no_destination", waiting: 1 },
  ]);
  expect((await admin("payments", "show", paymentId)).stdout).toContain("no_destination");
  const system = await readSystem(till.deps);
  expect(system.blocked).toContainEqual({ kind: "settlement", obstacle: "no_destination", count: 1 });
  till.clock.advance(3_600_000);
  // A merchant has waited for an hour, for whatever reason: the alert fires.
  expect((await readSystem(till.deps)).owed.find(({ table }) => table === "settlement")?.seconds).toBeGreaterThan(
    3_600,
  );
  till.clock.advance(-3_600_000);
  expect((await admin("retry", paymentId)).stdout).toContain("1 settlements due now");
  expect(await queueOf(till)).toMatchObject({ blocked_by: null });
  expect(await sweepAndSettle(till, 2)).toHaveLength(1);
  expect((await admin("payouts", "blocked", "--limit", "0")).code).toBe(2);
});
