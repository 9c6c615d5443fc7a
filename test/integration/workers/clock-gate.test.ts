import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { createPayment, pay, waitFinal } from "../../../local/buyer-client.ts";
import { WATCH_LEASE_MS } from "../../../transfers/watch-lease.ts";
import { fundBuyer, networksFileFor, startChain } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { startFleet } from "../../support/fleet.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { withClockAhead } from "../../support/skewed-clock.ts";
import { spawnProcess, spawnUnready } from "../../support/spawn-process.ts";
import { testKeys } from "../../support/test-deps.ts";
import { openQueues } from "../../support/test-queues.ts";
import { waitFor } from "../../support/wait-for.ts";

const MINUTE = 60_000;

/** A chain, a database with a merchant, queues, and the environment of processes that use them. */
async function makeParts() {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const queues = await openQueues();
  await queues.ready();
  const env = {
    DATABASE_URL: fixture.databaseUrl,
    REDIS_URL: queues.url,
    REDIS_PREFIX: queues.prefix,
    NETWORKS_FILE: await networksFileFor(chain, {}),
    ...testKeys,
    SIGNER: "embedded",
    ...chain.keys.env,
  };
  const inMs = (ms: number) => new Date(fixture.deps.now().getTime() + ms);
  const stateOf = async (id: string) => (await fixture.status(id)).state;
  return { chain, fixture, queues, env, inMs, stateOf };
}

const readSkew = async (metricsUrl: string): Promise<number | undefined> => {
  const answer = await fetch(metricsUrl).catch(() => undefined);
  const found = /^pay_clock_skew_seconds\{.*against="postgres".*\} (\S+)$/m.exec((await answer?.text()) ?? "");
  return found ? Number(found[1]) : undefined;
};

describe("a worker whose clock is far from Postgres'", () => {
  test("a worker whose clock is minutes off takes no job, is not ready and reports the skew, while another one works", async () => {
    const { chain, fixture, queues, env, inMs, stateOf } = await makeParts();
    const skewed = await spawnUnready({ role: "worker", env: { ...env, ...withClockAhead(5 * MINUTE) } });
    const findClockLine = () => skewed.lines.find((line) => line.includes("differs too much"));
    await waitFor(() => findClockLine() !== undefined, { within: 20_000, what: "it logs that its clock is wrong" });
    expect(Number(/"aheadMs":(\d+)/.exec(findClockLine() ?? "")?.[1])).toBeCloseTo(5 * MINUTE, -4);
    const skew = await waitFor(() => readSkew(skewed.metricsUrl), { within: 10_000, what: "the metric" });
    expect(skew).toBeCloseTo(300, -1);
    const ready = await fetch(skewed.metricsUrl.replace("/metrics", "/readyz"));
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ checks: { clock: false } });

    const buyer = await fundBuyer(chain);
    const paid = await fixture.create(100n, { expiresAt: inMs(4 * MINUTE) });
    const unpaid = await fixture.create(100n, { expiresAt: inMs(4 * MINUTE) });
    const attemptId = await fixture.attempt(paid, buyer);
    await queues.enqueue("verify-signature", [{ data: { chain: chain.id, attemptIds: [attemptId] } }]);
    await queues.enqueue("expire-payment", [{ data: { paymentId: unpaid } }]);
    await spawnProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "sweep" } });
    // Due rows stay on the queues for longer than a worker needs to take them.
    await waitFor(async () => (await queues.count("watch-chain")).all > 0, { within: 10_000 });
    expect(await stateOf(paid)).toBe("requires_action");

    await spawnProcess({ role: "worker", env });
    await waitFor(async () => (await stateOf(paid)) === "succeeded", { within: 20_000 });
    expect(await stateOf(unpaid)).toBe("requires_action");
  });
});

test("a fleet whose machines are all ahead gives a payment the right deadline, and the payment succeeds", async () => {
  const chain = await startChain();
  const fleet = await startFleet({ chain, workers: 1, env: withClockAhead(25_000) });
  const id = await createPayment(fleet.shop, { referenceId: "order-1", cents: "1250" });
  const [row] = await execute(
    fleet.databaseUrl,
    "select extract(epoch from expires_at - clock_timestamp())::float8 as left from payment",
  );
  expect(Number(row?.["left"])).toBeGreaterThan(290);
  expect(Number(row?.["left"])).toBeLessThanOrEqual(300);
  await pay(fleet.shop, id, await fundBuyer(chain), chain.id);
  expect(await waitFinal(fleet.shop, id, 30_000)).toMatchObject({ status: "succeeded" });
});

describe("a worker whose clock is slightly ahead", () => {
  test("a worker that is slightly ahead expires no payment early, and its lease ends in time when it is killed", async () => {
    const { chain, fixture, env, inMs, stateOf } = await makeParts();
    const ahead = await spawnProcess({ role: "worker", env: { ...env, ...withClockAhead(25_000) } });
    const buyer = await fundBuyer(chain);
    const id = await fixture.create(100n, { expiresAt: inMs(20_000) });
    await fixture.offer(id, buyer);
    const { rows } = await sql<{ deadline: Date }>`select expires_at as deadline from payment`.execute(fixture.db);
    const endedAt = async () => {
      const found = await sql<{
        at: Date;
      }>`select at from event where subject = ${id} and to_state = 'expired'`.execute(fixture.db);
      return found.rows[0]?.at;
    };
    await waitFor(async () => (await endedAt()) !== undefined, { within: 30_000, what: "the payment has expired" });
    expect(await stateOf(id)).toBe("expired");
    expect((await endedAt())?.getTime()).toBeGreaterThanOrEqual(rows[0]?.deadline.getTime() ?? 0);
    // Events carry the database's time, whichever process writes them.
    expect((await endedAt())?.getTime()).toBeLessThan(Date.now() + 2_000);

    const ownerIs = (pid: number) => async () =>
      (await fixture.db.selectFrom("chain_cursor").select("owner").executeTakeFirst())?.owner?.includes(`-${pid}-`) ===
      true;
    await waitFor(ownerIs(ahead.pid), { within: 10_000, what: "it watches" });
    await ahead.kill("SIGKILL");
    const left = await sql<{ ms: number | null }>`
      select extract(epoch from lease_until - clock_timestamp())::float8 * 1000 as ms from chain_cursor`.execute(
      fixture.db,
    );
    expect(left.rows[0]?.ms ?? 0, "the lease counts by Postgres' clock").toBeLessThanOrEqual(WATCH_LEASE_MS);
    const next = await spawnProcess({ role: "worker", env });
    await waitFor(ownerIs(next.pid), { within: 30_000, what: "the other one watches" });
  });
});
