import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import type { OperatorAction } from "../../../../ops/bull-board/allowed-writes.ts";
import { buildBoard } from "../../../../ops/bull-board/board.ts";
import { createLog } from "../../../../runtime/log.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { execute } from "../../../support/execute-sql.ts";
import { redisPrefix } from "../../../support/redis-prefix.ts";
import { spawnProcess } from "../../../support/spawn-process.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { waitFor } from "../../../support/wait-for.ts";

const login = { user: "operator", password: "a long password" };
const authorization = `Basic ${Buffer.from(`${login.user}:${login.password}`).toString("base64")}`;
const { url: redisUrl, prefix } = redisPrefix();

/** A queue on the shared Redis with one failed job, as a worker leaves it. */
async function queueWithFailedJob(name = "settle", jobId = "settle-1-0", under = prefix) {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  addCleanup(() => connection.disconnect());
  const queue = new Queue(name, { connection, prefix: under });
  addCleanup(() => queue.close());
  await queue.add(name, { settlementId: "stl_1" }, { jobId });
  const worker = new Worker(name, () => Promise.reject(new Error("the lane is held")), { connection, prefix: under });
  await waitFor(async () => (await queue.getJobState(jobId)) === "failed", { within: 10_000 });
  await worker.close();
  return queue;
}

async function boardOver(queue: Queue, recordAction: (action: OperatorAction) => Promise<unknown>) {
  const log = createLog({ level: "silent", role: "bull-board" });
  const metrics = createMetrics(new Registry(), "bull-board");
  const board = await buildBoard({ queues: [queue], login, deployment: "test", recordAction, log, metrics });
  addCleanup(() => board.close());
  return board;
}

const queue = await queueWithFailedJob();
const recorded: OperatorAction[] = [];
const board = await boardOver(queue, async (action) => recorded.push(action));
const job = "/api/queues/settle/settle-1-0";
const put = (url: string, headers: Record<string, string> = {}) =>
  board.inject({ method: "PUT", url, headers: { authorization, ...headers } });

test("the board shows nothing without a login, with a wrong password or with a wrong name", async () => {
  const wrong = ["operator:wrong", "root:a long password"].map(
    (pair) => `Basic ${Buffer.from(pair).toString("base64")}`,
  );
  for (const url of ["/", "/api/queues", job, "/runbooks", "/static/favicon.svg"]) {
    for (const given of [undefined, ...wrong]) {
      const headers = given === undefined ? {} : { authorization: given };
      const answer = await board.inject({ url, headers, remoteAddress: "192.0.2.1" });
      expect([url, answer.statusCode, answer.headers["www-authenticate"]]).toEqual([url, 401, expect.any(String)]);
    }
  }
});

test("an address with ten failed logins is refused for a while, even with the right password, and no other address is", async () => {
  const ask = (given: string, remoteAddress: string) =>
    board.inject({ url: "/", headers: { authorization: given }, remoteAddress });
  const wrong = `Basic ${Buffer.from("operator:wrong").toString("base64")}`;
  for (let tries = 0; tries < 10; tries += 1) expect((await ask(wrong, "192.0.2.2")).statusCode).toBe(401);
  for (const given of [wrong, authorization]) {
    const refused = await ask(given, "192.0.2.2");
    expect(refused.statusCode).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  }
  expect((await ask(authorization, "192.0.2.3")).statusCode).toBe(200);
});

test("the board shows a failed job with its reason and its data", async () => {
  const answer = await board.inject({ url: job, headers: { authorization } });
  expect(answer.json()).toMatchObject({
    status: "failed",
    job: { id: "settle-1-0", data: { settlementId: "stl_1" }, failedReason: "the lane is held" },
  });
});

test("the board serves its page and forbids framing", async () => {
  const answer = await board.inject({ url: "/", headers: { authorization } });
  expect([answer.statusCode, answer.headers["x-frame-options"]]).toEqual([200, "DENY"]);
});

test.each([
  ["obliterate", "PUT", "/api/queues/settle/obliterate"],
  ["empty", "PUT", "/api/queues/settle/empty"],
  ["pause", "PUT", "/api/queues/settle/pause"],
  ["clean", "PUT", `${job}/clean`],
  ["retry every completed job", "PUT", "/api/queues/settle/retry/completed"],
  ["update data", "PATCH", `${job}/update-data`],
  ["add a job", "POST", "/api/queues/settle/add"],
] as const)("a request to %s is refused and changes nothing", async (_name, method, url) => {
  const payload = { name: "settle", data: { settlementId: "stl_2" }, options: {}, jobData: {}, force: true };
  const answer = await board.inject({ method, url, headers: { authorization }, payload });
  expect(answer.statusCode).toBe(403);
  expect(await queue.getJobCounts("failed", "waiting")).toEqual({ failed: 1, waiting: 0 });
  expect(await queue.isPaused()).toBe(false);
  expect((await queue.getJob("settle-1-0"))?.data).toEqual({ settlementId: "stl_1" });
  expect(recorded).toEqual([]);
});

test.each([{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, { origin: "https://evil.example" }])(
  "a retry that another site requests is refused: %j",
  async (headers) => {
    expect((await put(`${job}/retry`, headers)).statusCode).toBe(403);
    expect(await queue.getJobState("settle-1-0")).toBe("failed");
    expect(recorded).toEqual([]);
  },
);

test("a write that cannot be recorded is not executed", async () => {
  const boardWithoutDatabase = await boardOver(queue, () => Promise.reject(new Error("no database")));
  const answer = await boardWithoutDatabase.inject({ method: "PUT", url: `${job}/retry`, headers: { authorization } });
  expect(answer.statusCode).toBe(503);
  expect(await queue.getJobState("settle-1-0")).toBe("failed");
});

test("a retry runs the job again and is recorded", async () => {
  expect((await put(`${job}/retry`, { "sec-fetch-site": "same-origin" })).statusCode).toBe(204);
  expect(recorded).toEqual([{ actor: "operator", action: "retry", queue: "settle", jobId: "settle-1-0" }]);
  expect(await queue.getJobState("settle-1-0")).toBe("waiting");
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  addCleanup(() => connection.disconnect());
  const seen: unknown[] = [];
  const worker = new Worker("settle", async ({ data }) => seen.push(data), { connection, prefix });
  await waitFor(() => seen.length > 0, { within: 10_000 });
  await worker.close();
  expect(seen).toEqual([{ settlementId: "stl_1" }]);
});

test("the process serves the board, its probes and metrics, and records each write", async () => {
  const databaseUrl = await createDatabase();
  const own = redisPrefix();
  const failed = await queueWithFailedJob("relay-transfers", "relay-trf-1", own.prefix);
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: own.url,
    REDIS_PREFIX: own.prefix,
    ADMIN_PASSWORD: login.password,
  };
  const process = await spawnProcess({ role: "bull-board", env });
  expect((await fetch(process.url)).status).toBe(401);
  const retryUrl = `${process.url}/api/queues/relay-transfers/relay-trf-1/retry`;
  expect((await fetch(retryUrl, { method: "PUT", headers: { authorization } })).status).toBe(204);
  expect(await failed.getJobState("relay-trf-1")).toBe("waiting");
  expect(await execute(databaseUrl, "select actor_id, action, subject from audit_entry")).toEqual([
    { actor_id: "operator", action: "retry", subject: "relay-transfers:relay-trf-1" },
  ]);
  const metrics = await (await fetch(process.metricsUrl)).text();
  expect(metrics).toContain('role="bull-board"');
  process.kill("SIGTERM");
  expect(await process.gone).toEqual({ code: 0, signal: null });
});
