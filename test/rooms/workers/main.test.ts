import { describe, expect, test } from "vitest";
import { launchProcess } from "../../../ops/local/process.ts";
import { atEnd } from "../../support/at-end.ts";
import { fundBuyer, networksFileFor, networksFor, startChain } from "../../support/chain.ts";
import { testDataKeys } from "../../support/deps.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { spawnProcess } from "../../support/process.ts";
import { openQueues } from "../../support/queue.ts";
import { makeTill } from "../../support/till.ts";
import { waitFor } from "../../support/wait-for.ts";

/** A chain behind a proxy, a database with a merchant, queues of one's own, and what a worker process needs for them. */
async function makeHouse() {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const till = await makeTill(chain);
  const queues = await openQueues();
  await queues.ready();
  const env = {
    DATABASE_URL: till.databaseUrl,
    REDIS_URL: queues.url,
    REDIS_PREFIX: queues.prefix,
    NETWORKS_FILE: await networksFileFor(chain, { rpcUrls: [proxy.url] }),
    DATA_KEYS: testDataKeys,
    ...chain.keys.env,
  };
  /** An attempt whose job is on the queue. */
  const attempt = async () => {
    const paymentId = await till.create();
    const attemptId = await till.attempt(paymentId, await fundBuyer(chain));
    await queues.ring("verify-signature", [{ data: { attemptIds: [attemptId] } }]);
    return { paymentId, attemptId };
  };
  /** Holds verification, and nothing else, at the chain. */
  const hold = (ms: number) => proxy.delay(ms, ({ method }) => method === "eth_call");
  return { chain, proxy, till, queues, env, attempt, hold };
}

describe("WORKER_QUEUES", () => {
  test("limits what a process serves: other queues' jobs stay where they are", async () => {
    const { env, till, queues } = await makeHouse();
    const expiresAt = new Date(till.deps.now().getTime() + 1_500);
    const [paymentId, other] = [await till.create(100n, { expiresAt }), await till.create(100n, { expiresAt })];
    await queues.ring("settle", [{ data: { settlementIds: [`stl_${"0".repeat(32)}`] } }]);
    await queues.ring("expire-payment", [{ data: { paymentId } }, { data: { paymentId: other } }]);
    await spawnProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "settle, sweep" } });
    await waitFor(async () => (await queues.count("settle")).all === 0, { within: 10_000 });
    await waitFor(() => Date.now() > expiresAt.getTime(), { within: 5_000 });
    expect((await queues.count("expire-payment")).all).toBe(2);
    expect((await till.status(paymentId)).state).toBe("requires_action");
    await spawnProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "expire-payment" } });
    await waitFor(async () => (await till.status(other)).state === "expired", { within: 10_000 });
  });

  test("with a name that is no queue ends the process with a sentence that says which and what there is", async () => {
    const { env } = await makeHouse();
    const started = await launchProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "settle,settles" } });
    atEnd(() => started.kill("SIGKILL"));
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toMatch(/no queue of ours: settles;.*expire-payment/);
    expect(started.tail()).not.toContain("    at ");
  });
});

describe("a worker that cannot start", () => {
  test("because a key belongs to another address says so, without the key", async () => {
    const { env, chain } = await makeHouse();
    const key = chain.keys.env.LANE_KEY_0 ?? "";
    const started = await launchProcess({ role: "worker", env: { ...env, TREASURY_KEY: key } });
    atEnd(() => started.kill("SIGKILL"));
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail().toLowerCase()).toContain(chain.keys.treasury.address.toLowerCase());
    expect(started.tail()).not.toContain(key.slice(2));
  });

  test("because the token's domain is another one says so and stays away, though the chain answers", async () => {
    const { env, chain } = await makeHouse();
    const assets = [{ ...(await assetOf(chain)), domain: { name: "USD Coin", version: "1" } }];
    const started = await launchProcess({
      role: "worker",
      env: { ...env, NETWORKS_FILE: await networksFileFor(chain, { change: { assets } }) },
    });
    atEnd(() => started.kill("SIGKILL"));
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toContain("does not match the token contract");
  });

  test("because the RPC is away waits for it, is not ready meanwhile, and then works", async () => {
    const { env, proxy, till, attempt } = await makeHouse();
    proxy.refuse(true);
    const started = await launchProcess({ role: "worker", env });
    atEnd(() => started.kill("SIGKILL"));
    await waitFor(() => started.lines.some((line) => line.includes("cannot start yet")), { within: 20_000 });
    const ready = await fetch(new URL("/readyz", started.metricsUrl));
    expect(ready.status).toBe(503);
    const { attemptId } = await attempt();
    proxy.refuse(false);
    await waitFor(async () => (await till.verdict(attemptId)) === "verified", { within: 20_000 });
    expect(started.isGone()).toBe(false);
  });
});

describe("SIGTERM in the middle of jobs", () => {
  test("lets them finish, takes nothing new, and the process leaves with 0", async () => {
    const { env, till, queues, attempt, hold, proxy } = await makeHouse();
    const worker = await spawnProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "verify-signature" } });
    const before = proxy.calls.eth_call ?? 0;
    hold(1_500);
    const running = await attempt();
    await waitFor(() => (proxy.calls.eth_call ?? 0) > before, { within: 10_000, what: "the job asks the chain" });
    const left = worker.kill("SIGTERM");
    await waitFor(() => worker.lines.some((line) => line.includes('"closing"')), { within: 5_000 });
    const late = await attempt();
    await left;
    expect(await worker.gone).toEqual({ code: 0, signal: null });
    expect(await till.verdict(running.attemptId)).toBe("verified");
    expect(await till.verdict(late.attemptId)).toBe("waiting");
    expect((await queues.count("verify-signature")).all).toBe(1);
  });

  test("leaves within DRAIN_MS when a job hangs, and another worker does that job", async () => {
    const { env, till, attempt, hold, proxy } = await makeHouse();
    const limited = { ...env, WORKER_QUEUES: "verify-signature,sweep", DRAIN_MS: "500" };
    const worker = await spawnProcess({ role: "worker", env: limited });
    const before = proxy.calls.eth_call ?? 0;
    hold(20_000);
    const { attemptId, paymentId } = await attempt();
    await waitFor(() => (proxy.calls.eth_call ?? 0) > before, { within: 10_000 });
    const begun = Date.now();
    await worker.kill("SIGTERM");
    expect(Date.now() - begun, "half a second of draining, and what closing takes").toBeLessThan(8_000);
    expect(await worker.gone).toEqual({ code: 0, signal: null });
    expect(await till.verdict(attemptId)).toBe("waiting");
    hold(0);
    await spawnProcess({ role: "worker", env: limited });
    await waitFor(async () => (await till.verdict(attemptId)) === "verified", { within: 30_000 });
    expect((await till.status(paymentId)).state).toBe("processing");
    expect((await till.transfers()).filter((row) => row.payment_id === paymentId)).toHaveLength(1);
  });
});

async function assetOf(chain: Awaited<ReturnType<typeof startChain>>) {
  return (await networksFor(chain)).chains[0]?.assets[0];
}
