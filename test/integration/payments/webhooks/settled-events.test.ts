import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { changeEndpoint, deleteEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import { writeSettledEvents } from "../../../../payments/webhooks/settled-events.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { testActor } from "../../../support/test-actor.ts";
import { deliverAll, registerEndpoint, startWebhookEndpoint } from "../../../support/webhook-endpoint.ts";

/** Sends a payout of one real payment and `more` inserted ones, without confirming it. */
async function sendPayout(more: number) {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const endpoint = await registerEndpoint(fixture, "https://shop.example/hooks");
  await accumulatePayouts(fixture, { ms: 60_000 });
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { id: settlementId } = await fixture.settlementOf(paymentId);
  await addPayments({ fixture, chain, settlementId }, more);
  fixture.clock.advance(61_000);
  await fixture.watch();
  expect(await fixture.settle(settlementId)).toEqual(["begun"]);
  await fixture.relay();
  return { fixture, settlementId, paymentId, endpointId: endpoint.id };
}

/** Inserts `count` succeeded payments of a settlement, without their events. */
async function addPayments(
  { fixture, chain, settlementId }: { fixture: MerchantFixture; chain: TestChain; settlementId: string },
  count: number,
): Promise<void> {
  await execute(
    fixture.databaseUrl,
    "alter table payment disable trigger user",
    `insert into payment (id, account_id, merchant_id, mode, unit, value, state, state_version, tx_id, paid_asset,
        paid_amount, settlement_id, created_at, updated_at, expires_at)
      select 'pay_' || md5('${settlementId}' || n), '${fixture.accountId}', '${fixture.merchantId}', 'live', 'iso4217/USD', 100,
        'succeeded', 2, '0x01', '${chain.asset}', 1000000, '${settlementId}', now(), now(), now()
      from generate_series(1, ${count}) n`,
    "alter table payment enable trigger user",
  );
}

/** Counts the rows of every table that grows with work. */
async function countRows(fixture: MerchantFixture): Promise<Record<string, number>> {
  const tables = await execute(
    fixture.databaseUrl,
    "select tablename from pg_tables where schemaname = 'public' and tablename not in ('chain_block', 'kysely_migration')",
  );
  const counts: Record<string, number> = {};
  for (const { tablename } of tables) {
    const [row] = await execute(fixture.databaseUrl, `select count(*)::int as count from ${tablename}`);
    counts[String(tablename)] = Number(row?.["count"]);
  }
  return counts;
}

async function countWritten(fixture: MerchantFixture, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await countRows(fixture);
  await work();
  const after = await countRows(fixture);
  return Object.fromEntries(
    Object.entries(after)
      .map(([table, count]) => [table, count - (before[table] ?? 0)] as const)
      // A day's sums are spread over a random number of rows.
      .filter(([table, count]) => count !== 0 && table !== "ledger_day"),
  );
}

const settled = (fixture: MerchantFixture) =>
  fixture.db
    .selectFrom("webhook_event as v")
    .leftJoin("webhook_delivery as d", "d.event_id", "v.id")
    .select(["v.payment_id", "v.state_version", "v.at", "d.state", "d.endpoint_id"])
    .where("v.type", "=", "payment.settled")
    .execute();
const unfinished = (fixture: MerchantFixture) => fixture.db.selectFrom("webhook_fanout").selectAll().execute();

test("the transaction that confirms a payout writes as many rows for 20,000 payments as for one payment", {
  timeout: 600_000,
}, async () => {
  const [small, large] = [await sendPayout(0), await sendPayout(20_000)];
  const forOne = await countWritten(small.fixture, small.fixture.watch);
  const forMany = await countWritten(large.fixture, large.fixture.watch);
  expect((await large.fixture.settlementOf(large.paymentId)).state).toBe("paid");
  expect(forMany).toEqual(forOne);
  expect(forMany).toMatchObject({ webhook_fanout: 1 });
});

/** Starts a process that writes events in ten parts, if it is not killed, and kills it right after the first one. */
async function killWriter(databaseUrl: string): Promise<void> {
  const code = `
    import { openDb } from "./db/open.ts";
    import { writeSettledEvents } from "./payments/webhooks/settled-events.ts";
    const db = openDb(${JSON.stringify(databaseUrl)}, { max: 1 });
    for (let part = 0; part < 10; part += 1) {
      await writeSettledEvents({ db });
      process.stdout.write("part");
    }
    setInterval(() => undefined, 1_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.once("data", () => child.kill("SIGKILL"));
  const [, signal] = await once(child, "exit");
  expect(signal).toBe("SIGKILL");
}

test("every payment of a payout gets one event when several workers write concurrently and one of them dies", async () => {
  const { fixture, paymentId } = await sendPayout(20_000);
  await fixture.watch();
  const write = async (): Promise<void> => {
    while ((await writeSettledEvents(fixture.deps)) > 0);
  };
  await killWriter(fixture.databaseUrl);
  const before = (await settled(fixture)).length;
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(20_001);
  expect(before % 500).toBe(0);
  while ((await unfinished(fixture)).length > 0) await Promise.all([write(), write(), write()]);
  const events = await settled(fixture);
  expect(events).toHaveLength(20_001);
  expect(new Set(events.map((event) => event.payment_id)).size).toBe(20_001);
  const { paid_at: paidAt } = await fixture.settlementOf(paymentId);
  for (const event of events) expect(event).toMatchObject({ state_version: 3, at: paidAt, state: "pending" });
});

test("an endpoint gets only the events that are written while it is registered, and every event is kept", async () => {
  const { fixture, endpointId } = await sendPayout(700);
  await fixture.watch();
  expect(await writeSettledEvents(fixture.deps)).toBe(500);
  unwrap(await deleteEndpoint(fixture.deps, { endpointId, actor: testActor }));
  const second = await registerEndpoint(fixture, "https://shop.example/later");
  while ((await writeSettledEvents(fixture.deps)) > 0);
  expect(await unfinished(fixture)).toEqual([]);
  const events = await settled(fixture);
  const of = (id: string) => events.filter((event) => event.endpoint_id === id).length;
  expect([events.length, of(endpointId), of(second.id)]).toEqual([701, 500, 201]);
});

test("a deliverer sends a payment's success before its payout, and new events before the rest of a large payout", async () => {
  const { fixture, settlementId, paymentId, endpointId } = await sendPayout(1_200);
  const endpoint = await startWebhookEndpoint();
  const moved = { endpointId, actor: testActor, url: endpoint.url };
  unwrap(await changeEndpoint({ ...fixture.deps, validateUrl: () => undefined }, moved));
  await fixture.watch();
  while ((await writeSettledEvents(fixture.deps)) > 0);
  const fresh = await fixture.create();
  while ((await deliverAll(fixture)) > 0);
  expect(endpoint.of(paymentId).map(({ event }) => event.type)).toEqual(
    ["created", "processing", "succeeded", "settled"].map((stage) => `payment.${stage}`),
  );
  const paid = await execute(fixture.databaseUrl, `select id from payment where settlement_id = '${settlementId}'`);
  const received = endpoint.arrivals.filter(({ event }) => event.type === "payment.settled");
  expect(received.map(({ event }) => event.data.payment_id).sort()).toEqual(paid.map(({ id }) => String(id)).sort());
  expect(endpoint.arrivals.findIndex(({ event }) => event.data.payment_id === fresh)).toBeLessThan(100);
});

test("the oldest undelivered event is as old as the payout, even while the event is not written yet", async () => {
  const { fixture } = await sendPayout(10);
  await fixture.watch();
  await fixture.db.updateTable("webhook_delivery").set({ state: "delivered", due_at: null }).execute();
  fixture.clock.advance(90_000);
  const { oldestEventSeconds, overdue } = await readSystemStatus(fixture.deps);
  expect(oldestEventSeconds).toBeGreaterThanOrEqual(90);
  expect(overdue.find(({ queue }) => queue === "deliver-webhook")?.seconds).toBeGreaterThanOrEqual(90);
});
