import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { ask, cancel, getStatus, pay, Refused, type Shop, waitFinal } from "../../local/buyer-client.ts";
import { startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { addCleanup } from "../support/cleanups.ts";
import { fundBuyers, networksFileFor, startChain } from "../support/evm-chain.ts";
import { execute } from "../support/execute-sql.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { startNameServer } from "../support/name-server.ts";
import { type SpawnedProcess, spawnUnready } from "../support/spawn-process.ts";
import { testKeys } from "../support/test-deps.ts";
import { waitFor } from "../support/wait-for.ts";

// compose.yml without containers: two apis at addresses of their own behind Caddy with the shipped Caddyfile, which finds them
// through a name server as Docker has one. It needs Caddy 2.11.2 or later, so `npm test` leaves it out:
//   CADDY=/usr/bin/caddy npx vitest run --project e2e test/e2e/behind-proxy.test.ts
const caddy = process.env["CADDY"] ?? "caddy";
const buyersAtOnce = 12;

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 2 });
const buyers = await fundBuyers(chain, buyersAtOnce);
const port = await freePort();
/** The replicas that run, by their address. Docker's name server knows a container from its start to its end. */
const replicas = new Map<string, SpawnedProcess>();

async function startReplica(address: string): Promise<void> {
  const env = {
    DATABASE_URL: fleet.databaseUrl,
    REDIS_URL: fleet.redis.url,
    REDIS_PREFIX: fleet.redis.prefix,
    NETWORKS_FILE: await networksFileFor(chain, {}),
    PUBLIC_URL: "http://127.0.0.1",
    HOST: address,
    ...testKeys,
    RATE_LIMIT_PER_ADDRESS: "0",
    RATE_LIMIT_PER_KEY: "0",
  };
  const metricsPort = await freePort();
  const replica = await spawnUnready({ role: "api", env, port, metricsPort });
  replicas.set(address, replica);
  void replica.gone.then(() => replicas.delete(address));
  const isReady = () =>
    fetch(`http://${address}:${metricsPort}/readyz`).then(
      ({ ok }) => ok || undefined,
      () => undefined,
    );
  await waitFor(isReady, { within: 30_000, what: `the api at ${address}`, every: 50 });
}

/** Starts Caddy with the Caddyfile of compose.yml. Returns its URL. */
async function startProxy(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "caddy-"));
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const site = `http://127.0.0.1:${await freePort()}`;
  const resolver = await startNameServer(() => [...replicas.keys()]);
  const shipped = readFileSync(new URL("../../ops/compose/Caddyfile", import.meta.url), "utf8");
  const file = join(folder, "Caddyfile");
  const changes: [string, string][] = [
    ["{\n", "{\n\tadmin off\n"],
    ["port 8080", `port ${port}`],
    ["refresh 1s", `refresh 1s\n\t\t\tresolvers udp/${resolver}`],
  ];
  const changed = changes.reduce((text, [from, to]) => text.replace(from, to), shipped);
  await writeFile(file, changed);
  const env = { PATH: process.env["PATH"], HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, SITE: site };
  const child = await startChild(caddy, ["run", "--config", file, "--adapter", "caddyfile"], { env });
  addCleanup(() => child.end("SIGKILL"));
  await waitFor(
    () =>
      fetch(site).then(
        () => true,
        () => undefined,
      ),
    { within: 20_000, what: "Caddy" },
  );
  return site;
}

type Counts = Record<"payments" | "polls" | "withoutKey" | "withoutKeyFailed", number>;

/** Pays until `signal` is aborted. Each buyer creates a payment, pays it and waits for its end. Returns all payments' ids. */
async function load(shop: Shop, counts: Counts, failures: string[], signal: AbortSignal): Promise<string[]> {
  const ids: string[] = [];
  let next = 0;
  const note = (error: unknown) => {
    failures.push(error instanceof Refused ? error.message.slice(0, 200) : String(error));
  };
  const body = (reference: string) => ({ referenceId: reference, amount: { unit: "iso4217/USD", value: "1" } });
  const buy = async (buyer: (typeof buyers)[number]) => {
    while (!signal.aborted) {
      next += 1;
      const key = `order-${next}`;
      try {
        const created = await ask(shop, "POST", "/v1/payments", body(key), { "idempotency-key": key });
        const { id } = created as { id: string };
        ids.push(id);
        await pay(shop, id, buyer, chain.id);
        await waitFinal(shop, id, 60_000);
        counts.payments += 1;
      } catch (error) {
        note(error);
      }
    }
  };
  const poll = async () => {
    while (!signal.aborted) {
      const id = ids.at(-1);
      await pause(20);
      if (id !== undefined) await getStatus(shop, id).then(() => (counts.polls += 1), note);
    }
  };
  const createWithoutKey = async () => {
    while (!signal.aborted) {
      await pause(20);
      next += 1;
      counts.withoutKey += 1;
      await ask(shop, "POST", "/v1/payments", body(`order-${next}`)).catch(() => (counts.withoutKeyFailed += 1));
    }
  };
  await Promise.all([...buyers.map(buy), poll(), poll(), createWithoutKey()]);
  return ids;
}

test("no request that may be repeated fails while the apis behind the proxy are restarted and killed", async () => {
  const [first, second] = ["127.0.0.11", "127.0.0.12"] as const;
  await Promise.all([startReplica(first), startReplica(second)]);
  const baseUrl = await startProxy();
  const shop = { ...fleet.shop, baseUrl };
  const counts = { payments: 0, polls: 0, withoutKey: 0, withoutKeyFailed: 0 };
  const failures: string[] = [];
  const stop = new AbortController();
  const loading = load(shop, counts, failures, stop.signal);
  const steps: [string, NodeJS.Signals][] = [
    [first, "SIGTERM"],
    [second, "SIGTERM"],
    [first, "SIGKILL"],
    [second, "SIGKILL"],
  ];
  const more = (payments: number) => {
    const wanted = counts.payments + payments;
    return waitFor(() => counts.payments >= wanted, { within: 60_000, what: `${payments} more payments` });
  };
  for (const [address, signal] of steps) {
    await more(30);
    await replicas.get(address)?.kill(signal);
    await more(30);
    await startReplica(address);
    console.log(`after ${signal} of ${address}: ${JSON.stringify(counts)}`);
  }
  await waitFor(() => counts.payments >= 500, {
    within: 180_000,
    what: "500 payments",
  });
  stop.abort();
  const ids = await loading;
  console.log(JSON.stringify({ ...counts, created: ids.length }), failures);
  expect(failures).toEqual([]);
  // Nothing pays the payments that were created without a key; some exist although their creation answered 502.
  const open = await execute(fleet.databaseUrl, "select id from payment where state = 'requires_action'");
  for (const { id } of open) await cancel(fleet.shop, String(id));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: ids.length });
}, 400_000);
