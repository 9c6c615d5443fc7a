import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { openDb } from "../../db/open.ts";
import { createPayment, pay, waitFinal } from "../../local/buyer-client.ts";
import { computeTotp, totpStep } from "../../payments/operators/totp.ts";
import { queuePrefix } from "../../queues/queue-prefix.ts";
import { addCleanup } from "../support/cleanups.ts";
import { createOperators } from "../support/create-operators.ts";
import { fundBuyer, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { makeOtherAuthority, makeSecrets } from "../support/made-secrets.ts";
import { spawnProcess } from "../support/spawn-process.ts";
import { testEncryption, testKeys } from "../support/test-deps.ts";
import { startTlsRedis } from "../support/tls-services.ts";
import { waitFor } from "../support/wait-for.ts";
import { registerEndpointIn, startWebhookEndpoint } from "../support/webhook-endpoint.ts";

const secrets = await makeSecrets();
const redis = await startTlsRedis(secrets);
const [api, worker, board] = [await redis.urlOf("api"), await redis.urlOf("worker"), await redis.urlOf("board")];
const REDIS_CA_FILE = secrets.path("ca.crt");
const prefix = "pay";

/** Commands and keys that Redis has refused, with the user. */
async function listRefusals(): Promise<unknown[]> {
  const entries = (await redis.owner.call("ACL", "LOG")) as string[][];
  return entries.map((entry) => entry.slice(0, 10).join(" "));
}

/** Creates an operator and logs in to bull-board. Returns the session's cookie. */
async function logIn(boardUrl: string, databaseUrl: string): Promise<string> {
  const db = openDb(databaseUrl, { max: 1 });
  const now = () => new Date();
  const { olga } = await createOperators({ db, now, ...testEncryption() }).finally(() => db.destroy());
  const code = computeTotp(olga.secret, totpStep(now()));
  const body = new URLSearchParams({ name: "olga", password: olga.password, code });
  const answer = await fetch(`${boardUrl}/login`, { method: "POST", body, redirect: "manual" });
  expect(answer.status).toBe(303);
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

test("api, workers and bull-board serve a payment, its webhook and a retried job as users who may do only that", async () => {
  // A failed try leaves jobs and refusals, which a repetition would count.
  await redis.owner.flushall();
  await redis.owner.call("ACL", "LOG", "RESET");
  const chain = await startChain();
  const fleet = await startFleet({
    chain,
    redis: { url: worker, prefix },
    env: { REDIS_CA_FILE, RATE_LIMIT_PER_ADDRESS: "100000", RATE_LIMIT_PER_KEY: "100000" },
    envOf: { api: { REDIS_URL: api } },
  });
  const env = { DATABASE_URL: fleet.databaseUrl, REDIS_URL: board, REDIS_PREFIX: prefix, REDIS_CA_FILE, ...testKeys };
  const { url } = await spawnProcess({ role: "bull-board", env });
  const endpoint = await startWebhookEndpoint();
  await registerEndpointIn(fleet.databaseUrl, fleet.shop.caller.merchantId, endpoint.url);

  const id = await createPayment(fleet.shop, { referenceId: "order-1", cents: "1250" });
  await pay(fleet.shop, id, await fundBuyer(chain), chain.id);
  expect(await waitFinal(fleet.shop, id, 90_000)).toMatchObject({ status: "succeeded" });
  await waitFor(() => endpoint.types().includes("payment.settled"), { within: 60_000, what: "all webhooks" });

  const headers = { "api-key": fleet.testShop.caller.apiKey };
  await fetch(`${fleet.baseUrl}/v1/merchants`, { headers });
  const readLog = async () => {
    const answer = await fetch(`${fleet.baseUrl}/v1/request-logs`, { headers });
    return ((await answer.json()) as { data: unknown[] }).data;
  };
  await waitFor(async () => (await readLog()).length > 0, { within: 20_000, what: "the logged request" });

  const connection = redis.owner.duplicate({ maxRetriesPerRequest: null });
  const queue = new Queue("settle", { connection, prefix: queuePrefix(prefix, "settle") });
  addCleanup(async () => {
    await queue.close();
    connection.disconnect();
  });
  const job = await queue.add("settle", { settlementIds: "wrong" });
  const failed = () => queue.getFailed();
  await waitFor(async () => (await failed()).length === 1, { within: 20_000, what: "the job fails" });
  const cookie = await logIn(url, fleet.databaseUrl);
  const ask = (path: string) => fetch(`${url}/api/queues${path}`, { headers: { cookie } });
  const status = ["active", "completed", "delayed", "failed", "latest", "paused", "prioritized", "waiting"];
  for (const path of ["", ...status.map((one) => `?activeQueue=settle&status=${one}&page=1`), `/settle/${job.id}`])
    expect([path, (await ask(path)).status]).toEqual([path, 200]);
  const read = async (path: string) => (await fetch(`${url}/console/jobs${path}`, { headers: { cookie } })).text();
  const page = await read(`/settle/${job.id}`);
  expect(page).toContain("not a settle job");
  const token = page.match(/name="token" value="([^"]*)"/)?.[1] ?? "";
  const retry = (form: object) => {
    const body = new URLSearchParams({ token, queue: "settle", ...form });
    return fetch(`${url}/console/jobs`, { method: "POST", body, headers: { cookie }, redirect: "manual" });
  };
  expect((await retry({ job: job.id })).status).toBe(303);
  await waitFor(async () => (await failed()).length === 1, { within: 20_000, what: "the job fails again" });
  expect((await retry({})).status).toBe(303);

  expect(await listRefusals()).toEqual([]);
  const noted = [...fleet.apis, ...fleet.workers].flatMap(({ lines }) => lines.filter((line) => /NOPERM/.test(line)));
  expect(noted).toEqual([]);
});

const forbidden: [role: string, url: string, commands: string[][]][] = [
  [
    "api",
    api,
    [
      ["ZADD", "pay:database-epoch", "1", "count"],
      ["BZPOPMIN", "pay:{settle}:settle:marker", "1"],
    ],
  ],
  [
    "worker",
    worker,
    [
      ["SET", "other", "1"],
      ["SPUBLISH", "other", "1"],
    ],
  ],
  [
    "board",
    board,
    [
      ["SPUBLISH", "pay:payments:changed", "pay_1"],
      ["ZADD", "pay:database-epoch", "1", "count"],
    ],
  ],
];
const administrative = [
  ["FLUSHALL"],
  ["KEYS", "*"],
  ["CONFIG", "GET", "*"],
  ["ACL", "LIST"],
  ["SHUTDOWN"],
  ["MONITOR"],
];

test.each(forbidden)("Redis refuses the %s what it does not need", async (_role, url, commands) => {
  const ca = await secrets.read("ca.crt");
  const client = new Redis(url, { tls: { ca } });
  addCleanup(() => client.disconnect());
  client.on("error", () => undefined);
  for (const [command = "", ...args] of [...commands, ...administrative])
    await expect(client.call(command, ...args)).rejects.toThrow(/NOPERM/);
  expect(await client.ping()).toBe("PONG");
});

test("no client reaches Redis without a user, and a certificate of another authority or host name is refused", async () => {
  const ca = await secrets.read("ca.crt");
  const other = await makeOtherAuthority();
  const ping = async (url: string, tls: { ca: string }) => {
    const client = new Redis(url, { tls, retryStrategy: () => null, lazyConnect: true });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await client.ping();
    } finally {
      client.disconnect();
    }
  };
  expect(await ping(api, { ca })).toBe("PONG");
  const { port } = new URL(api);
  await expect(ping(`rediss://localhost:${port}`, { ca })).rejects.toThrow();
  await expect(ping(api, { ca: other })).rejects.toThrow();
  await expect(ping(api.replace("localhost", "127.0.0.1"), { ca })).rejects.toThrow();
});
