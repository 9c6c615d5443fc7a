import { describe, expect, test } from "vitest";
import { fundBuyer, networksFileFor, networksFor, startChain } from "../../support/evm-chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { inRealTime } from "../../support/in-real-time.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { scrape, sumOf } from "../../support/scrape.ts";
import { spawnProcess, spawnUnready } from "../../support/spawn-process.ts";
import { testKeys } from "../../support/test-deps.ts";
import { openQueues } from "../../support/test-queues.ts";
import { waitFor } from "../../support/wait-for.ts";

/** A chain behind a proxy, a database with a merchant, queues, and the environment of a worker process. */
async function makeWorkerSetup() {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeMerchantFixture(chain);
  const queues = await openQueues();
  await queues.ready();
  const env = {
    DATABASE_URL: fixture.databaseUrl,
    REDIS_URL: queues.url,
    REDIS_PREFIX: queues.prefix,
    NETWORKS_FILE: await networksFileFor(chain, { rpcUrls: [proxy.url] }),
    ...testKeys,
    SIGNER: "embedded",
    ...chain.keys.env,
  };
  /** Stores an attempt and enqueues its job. */
  const attempt = async () => {
    const paymentId = await fixture.create();
    const attemptId = await fixture.attempt(paymentId, await fundBuyer(chain));
    await queues.enqueue("verify-signature", [{ data: { chain: chain.id, attemptIds: [attemptId] } }]);
    return { paymentId, attemptId };
  };
  /** Delays verification, and nothing else, at the chain. */
  const hold = (ms: number) => proxy.delay(ms, ({ method }) => method === "eth_call");
  return { chain, proxy, fixture, queues, env, attempt, hold };
}

describe("WORKER_QUEUES", () => {
  test("a process serves only the queues that WORKER_QUEUES names, and other jobs stay where they are", async () => {
    const { env, fixture, queues } = await makeWorkerSetup();
    const expiresAt = new Date(fixture.deps.now().getTime() + 10_000);
    const [paymentId, other] = [await fixture.create(100n, { expiresAt }), await fixture.create(100n, { expiresAt })];
    await queues.enqueue("settle", [{ data: { settlementIds: [`stl_${"0".repeat(32)}`] } }]);
    await queues.enqueue("expire-payment", [{ data: { paymentId } }, { data: { paymentId: other } }]);
    await spawnProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "settle, sweep" } });
    await waitFor(async () => (await queues.count("settle")).all === 0, { within: 10_000 });
    await waitFor(() => Date.now() > expiresAt.getTime(), { within: 20_000 });
    expect((await queues.count("expire-payment")).all).toBeGreaterThanOrEqual(2);
    expect((await fixture.status(paymentId)).state).toBe("requires_action");
    await spawnProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "expire-payment" } });
    await waitFor(async () => (await fixture.status(other)).state === "expired", { within: 10_000 });
  });

  test("a process ends when WORKER_QUEUES names an unknown queue, with a message that lists the known ones", async () => {
    const { env } = await makeWorkerSetup();
    const started = await spawnUnready({ role: "worker", env: { ...env, WORKER_QUEUES: "settle,settles" } });
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toMatch(/unknown queues: settles;.*expire-payment/);
    expect(started.tail()).not.toContain("    at ");
    expect(started.records()).toHaveLength(started.lines.length);
  });

  test("only a process that delivers webhooks needs the key of their secrets, and it does not start without it", async () => {
    const { env } = await makeWorkerSetup();
    const { WEBHOOK_PRIVATE_KEYS: _key, ...withoutKey } = env;
    await spawnProcess({ role: "worker", env: { ...withoutKey, WORKER_QUEUES: "settle,sweep" } });
    const started = await spawnUnready({ role: "worker", env: { ...withoutKey, WORKER_QUEUES: "deliver-webhook" } });
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toContain("WEBHOOK_PRIVATE_KEYS is missing: this worker delivers webhooks");
  });
});

describe("a worker that cannot start", () => {
  test("a worker ends and names the address when a key belongs to another one, without printing the key", async () => {
    const { env, chain } = await makeWorkerSetup();
    const key = chain.keys.env["LANE_KEY_0"] ?? "";
    const started = await spawnUnready({ role: "worker", env: { ...env, TREASURY_KEY: key } });
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail().toLowerCase()).toContain(chain.keys.treasury.address.toLowerCase());
    expect(started.tail()).not.toContain(key.slice(2));
  });

  test("a worker ends with a message when the token's domain differs, although the chain responds", async () => {
    const { env, chain } = await makeWorkerSetup();
    const assets = [{ ...(await assetOf(chain)), domain: { name: "USD Coin", version: "1" } }];
    const started = await spawnUnready({
      role: "worker",
      env: { ...env, NETWORKS_FILE: await networksFileFor(chain, { change: { assets } }) },
    });
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toContain("does not match the token contract");
  });

  test("a worker waits for an unavailable RPC endpoint, is not ready meanwhile, and then works", async () => {
    const { env, proxy, fixture, attempt } = await makeWorkerSetup();
    proxy.refuse(true);
    const started = await spawnUnready({ role: "worker", env });
    await waitFor(() => started.lines.some((line) => line.includes("chain cannot start yet")), { within: 20_000 });
    const ready = await fetch(new URL("/readyz", started.metricsUrl));
    expect(ready.status).toBe(503);
    const { attemptId } = await attempt();
    proxy.refuse(false);
    await waitFor(async () => (await fixture.verificationResult(attemptId)) === "verified", { within: 20_000 });
    expect(started.isGone()).toBe(false);
  });

  test("a worker reports its start as its last sweep until it sweeps, and one that serves no sweep reports 0", async () => {
    const { env, proxy } = await makeWorkerSetup();
    proxy.refuse(true);
    const startWith = async (queues: string) => {
      const started = await spawnUnready({ role: "worker", env: { ...env, WORKER_QUEUES: queues } });
      await waitFor(() => started.lines.some((line) => line.includes("chain cannot start yet")), { within: 20_000 });
      return sumOf(await scrape(started.metricsUrl), "pay_sweep_last_run_timestamp_seconds");
    };
    expect(await startWith("settle")).toBe(0);
    const before = Date.now() / 1_000;
    expect(Math.abs(((await startWith("sweep")) ?? 0) - before)).toBeLessThan(60);
  });
});

describe("SIGTERM during jobs", () => {
  test("a worker finishes its jobs, takes no new one and exits with 0", async () => {
    const { env, fixture, queues, attempt, hold, proxy } = await makeWorkerSetup();
    const worker = await spawnProcess({ role: "worker", env: { ...env, WORKER_QUEUES: "verify-signature" } });
    const before = proxy.calls["eth_call"] ?? 0;
    hold(1_500);
    const running = await attempt();
    await waitFor(() => (proxy.calls["eth_call"] ?? 0) > before, { within: 10_000, what: "the job calls the chain" });
    const left = worker.kill("SIGTERM");
    await waitFor(() => worker.lines.some((line) => line.includes('"closing"')), { within: 20_000 });
    const late = await attempt();
    await left;
    expect(await worker.gone).toEqual({ code: 0, signal: null });
    expect(await fixture.verificationResult(running.attemptId)).toBe("verified");
    expect(await fixture.verificationResult(late.attemptId)).toBe("waiting");
    expect((await queues.count("verify-signature")).all).toBe(1);
  });

  test("a worker whose job hangs exits within DRAIN_MS, and another worker runs that job", inRealTime, async () => {
    const { env, fixture, attempt, hold, proxy } = await makeWorkerSetup();
    const limited = { ...env, WORKER_QUEUES: "verify-signature,sweep", DRAIN_MS: "500" };
    const worker = await spawnProcess({ role: "worker", env: limited });
    const before = proxy.calls["eth_call"] ?? 0;
    hold(20_000);
    const { attemptId, paymentId } = await attempt();
    await waitFor(() => (proxy.calls["eth_call"] ?? 0) > before, { within: 10_000 });
    const begun = Date.now();
    await worker.kill("SIGTERM");
    expect(Date.now() - begun, "half a second of draining, and the time to close").toBeLessThan(8_000);
    expect(await worker.gone).toEqual({ code: 0, signal: null });
    expect(await fixture.verificationResult(attemptId)).toBe("waiting");
    hold(0);
    await spawnProcess({ role: "worker", env: limited });
    await waitFor(async () => (await fixture.verificationResult(attemptId)) === "verified", { within: 30_000 });
    expect((await fixture.status(paymentId)).state).toBe("processing");
    expect((await fixture.transfers()).filter((row) => row.payment_id === paymentId)).toHaveLength(1);
  });
});

async function assetOf(chain: Awaited<ReturnType<typeof startChain>>) {
  return (await networksFor(chain)).chains[0]?.assets[0];
}
