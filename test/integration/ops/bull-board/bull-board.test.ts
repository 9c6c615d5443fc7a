import { Queue, Worker } from "bullmq";
import type { FastifyInstance } from "fastify";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { listAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { type BoardDeps, buildBoard } from "../../../../ops/bull-board/board.ts";
import type { RetriedJobs } from "../../../../payments/operators/sign-in.ts";
import { computeTotp, totpStep } from "../../../../payments/operators/totp.ts";
import { describeJob } from "../../../../queues/describe-job.ts";
import { queuePrefix } from "../../../../queues/queue-prefix.ts";
import { createLog } from "../../../../runtime/log.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { createOperators } from "../../../support/create-operators.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { redisPrefix } from "../../../support/redis-prefix.ts";
import { spawnProcess } from "../../../support/spawn-process.ts";
import { makeClock, testEncryption, testKeys } from "../../../support/test-deps.ts";
import { waitFor } from "../../../support/wait-for.ts";

const { url: redisUrl, prefix } = redisPrefix();
const { db } = await openTestDb(8);
const clock = makeClock();
const operatorDeps = { db, now: clock.now, ...testEncryption() };
const people = await createOperators(operatorDeps);

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

async function boardOver(
  queue: Queue,
  recordRetry: (token: string, retried: RetriedJobs) => Promise<unknown>,
  changed: Partial<BoardDeps> = {},
) {
  const log = createLog({ level: "silent", role: "bull-board" });
  const metrics = createMetrics(new Registry(), "bull-board");
  const settings = { queues: [queue], describeJob, deployment: "test", trustedProxies: ["192.0.2.250"] };
  const board = await buildBoard({ ...operatorDeps, ...settings, recordRetry, log, metrics, ...changed });
  addCleanup(() => board.close());
  return board;
}

type Form = { name: string; password: string; code: string };

/** Sends the login form of an operator, with the code of the present time unless it is given. */
function logIn(board: FastifyInstance, form: Partial<Form> & { name: keyof typeof people }, headers = {}) {
  const { password, secret } = people[form.name];
  const code = computeTotp(secret, totpStep(clock.now()));
  return board.inject({
    method: "POST",
    url: "/login",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    payload: new URLSearchParams({ password, code, ...form }).toString(),
    remoteAddress: "192.0.2.1",
  });
}

/** Logs in and returns the session's cookie, as a browser sends it. */
async function cookieOf(board: FastifyInstance, name: keyof typeof people): Promise<string> {
  clock.advance(30_000);
  const answer = await logIn(board, { name });
  expect(answer.statusCode).toBe(303);
  return String(answer.headers["set-cookie"]).split(";")[0] ?? "";
}

const queue = await queueWithFailedJob();
const recorded: RetriedJobs[] = [];
const board = await boardOver(queue, async (_token, retried) => recorded.push(retried));
const cookie = await cookieOf(board, "olga");
const job = "/api/queues/settle/settle-1-0";

test("the board shows nothing without a session: pages lead to the login, and other requests are refused", async () => {
  for (const url of ["/", "/api/queues", job, "/runbooks", "/static/favicon.svg"])
    for (const given of ["", "board=", "board=guessed", "__Host-board=guessed"])
      expect([url, (await board.inject({ url, headers: { cookie: given } })).statusCode]).toEqual([url, 401]);
  const page = await board.inject({ url: "/", headers: { accept: "text/html" } });
  expect([page.statusCode, page.headers.location]).toEqual([303, "/login"]);
  const form = await board.inject({ url: "/login" });
  expect([form.statusCode, form.headers["x-frame-options"]]).toEqual([200, "DENY"]);
});

test("a session cookie is invisible to scripts and other sites, and behind TLS it is only sent over TLS", async () => {
  clock.advance(30_000);
  const plain = await logIn(board, { name: "vera" });
  expect(plain.headers["set-cookie"]).toMatch(/^board=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  clock.advance(30_000);
  const code = computeTotp(people.vera.secret, totpStep(clock.now()));
  const secure = await board.inject({
    method: "POST",
    url: "/login",
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "x-forwarded-proto": "https",
      "x-forwarded-for": "198.51.100.1",
    },
    payload: new URLSearchParams({ name: "vera", password: people.vera.password, code }).toString(),
    remoteAddress: "192.0.2.250",
  });
  expect(secure.headers["set-cookie"]).toMatch(/^__Host-board=[\w-]{43}; .*HttpOnly; SameSite=Strict; Secure$/);
});

test("a login with a wrong name, password or code, or from another site's form, is refused alike", async () => {
  clock.advance(30_000);
  const wrong = [{ password: "wrong" }, { code: "000000" }, { code: "" }];
  for (const form of wrong) {
    const answer = await logIn(board, { name: "olga", ...form });
    expect([answer.statusCode, answer.headers["set-cookie"]]).toEqual([401, undefined]);
  }
  const unknown = await board.inject({
    method: "POST",
    url: "/login",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    payload: "name=unknown&password=x&code=123456",
  });
  expect(unknown.statusCode).toBe(401);
  expect((await logIn(board, { name: "olga" }, { "sec-fetch-site": "cross-site" })).statusCode).toBe(403);
});

test("a session ends at the logout and twelve hours after the login", async () => {
  const own = await cookieOf(board, "vera");
  const read = () => board.inject({ url: "/api/queues", headers: { cookie: own } });
  expect((await read()).statusCode).toBe(200);
  await board.inject({ method: "POST", url: "/logout", headers: { cookie: own } });
  expect((await read()).statusCode).toBe(401);
  const late = await cookieOf(board, "vera");
  clock.advance(12 * 60 * 60_000);
  expect((await board.inject({ url: "/api/queues", headers: { cookie: late } })).statusCode).toBe(401);
  clock.advance(-12 * 60 * 60_000);
});

test("without Postgres, the login and the board ask to try again later, say no more, and write the error to the log", async () => {
  const lines: { route: string; msg: string; err: { code: string } }[] = [];
  const log = createLog({ level: "error", role: "bull-board" }, { write: (line) => void lines.push(JSON.parse(line)) });
  const gone = openDb("postgres://127.0.0.1:1/pay", { max: 1 });
  addCleanup(() => gone.destroy());
  const cut = await boardOver(queue, async () => undefined, { db: gone, log });
  const guessed = { cookie: "board=guessed" };
  const answers = [
    await logIn(cut, { name: "olga" }),
    await cut.inject({ url: job, headers: guessed }),
    await cut.inject({ url: "/runbooks", headers: { ...guessed, accept: "text/html" } }),
    await cut.inject({ method: "POST", url: "/logout", headers: guessed }),
  ];
  for (const { statusCode, headers, body } of answers)
    expect([statusCode, headers["retry-after"], body]).toEqual([503, "5", '{"error":"Not available."}']);
  expect(lines.map(({ route, msg, err }) => [route, msg, err.code])).toEqual(
    ["/login", "/api/queues/:queueName/:jobId", "/runbooks", "/logout"].map((route) => [
      route,
      "board request failed",
      "ECONNREFUSED",
    ]),
  );
});

test("a viewer sees every job", async () => {
  const viewer = await cookieOf(board, "vera");
  expect((await board.inject({ url: job, headers: { cookie: viewer } })).statusCode).toBe(200);
});

test("the board shows a failed job with its reason and its data", async () => {
  const answer = await board.inject({ url: job, headers: { cookie } });
  expect(answer.json()).toMatchObject({
    status: "failed",
    job: { id: "settle-1-0", data: { settlementId: "stl_1" }, failedReason: "the lane is held" },
  });
});

test("the board serves its page and forbids framing", async () => {
  const answer = await board.inject({ url: "/", headers: { cookie } });
  expect([answer.statusCode, answer.headers["x-frame-options"]]).toEqual([200, "DENY"]);
});

test.each([
  ["obliterate", "PUT", "/api/queues/settle/obliterate"],
  ["empty", "PUT", "/api/queues/settle/empty"],
  ["pause", "PUT", "/api/queues/settle/pause"],
  ["clean", "PUT", `${job}/clean`],
  ["retry a job", "PUT", `${job}/retry`],
  ["promote a job", "PUT", `${job}/promote`],
  ["retry every failed job", "PUT", "/api/queues/settle/retry/failed"],
  ["pause all queues", "PUT", "/api/queues/pause"],
  ["update data", "PATCH", `${job}/update-data`],
  ["add a job", "POST", "/api/queues/settle/add"],
] as const)("a request to %s is refused and changes nothing", async (_name, method, url) => {
  const payload = { name: "settle", data: { settlementId: "stl_2" }, options: {}, jobData: {}, force: true };
  const answer = await board.inject({ method, url, headers: { cookie }, payload });
  expect(answer.statusCode).toBe(403);
  expect(await queue.getJobCounts("failed", "waiting")).toEqual({ failed: 1, waiting: 0 });
  expect(await queue.isPaused()).toBe(false);
  expect((await queue.getJob("settle-1-0"))?.data).toEqual({ settlementId: "stl_1" });
  expect(recorded).toEqual([]);
});

test("the process serves the board, its probes and metrics, and records each write", async () => {
  const own = redisPrefix();
  const { db, url: databaseUrl } = await openTestDb(4);
  const { anna } = await createOperators({ ...operatorDeps, db, now: () => new Date() });
  const failed = await queueWithFailedJob("relay-transfers", "relay-trf-1", queuePrefix(own.prefix, "relay-transfers"));
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: own.url,
    REDIS_PREFIX: own.prefix,
    TOTP_PRIVATE_KEYS: testKeys.TOTP_PRIVATE_KEYS,
  };
  const process = await spawnProcess({ role: "bull-board", env });
  expect((await fetch(process.url)).status).toBe(401);
  const { password, secret } = anna;
  const code = computeTotp(secret, totpStep(new Date()));
  const login = await fetch(`${process.url}/login`, {
    method: "POST",
    body: new URLSearchParams({ name: "anna", password, code }),
    redirect: "manual",
  });
  const session = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await (
    await fetch(`${process.url}/console/jobs/relay-transfers/relay-trf-1`, { headers: { cookie: session } })
  ).text();
  const token = page.match(/name="token" value="([^"]*)"/)?.[1] ?? "";
  const retried = await fetch(`${process.url}/console/jobs`, {
    method: "POST",
    body: new URLSearchParams({ token, queue: "relay-transfers", job: "relay-trf-1" }),
    headers: { cookie: session },
    redirect: "manual",
  });
  expect(retried.status).toBe(303);
  expect(await failed.getJobState("relay-trf-1")).toBe("waiting");
  const entries = await listAuditEntries(db, { day: undefined, subject: undefined, actor: "anna", limit: 10 });
  expect(entries.map(({ action, subject, actor_address }) => [action, subject, actor_address])).toEqual([
    ["job.retried", "relay-transfers/relay-trf-1", "127.0.0.1"],
    ["operator.signed_in", "anna", "127.0.0.1"],
  ]);
  const metrics = await (await fetch(process.metricsUrl)).text();
  expect(metrics).toContain('role="bull-board"');
  process.kill("SIGTERM");
  expect(await process.gone).toEqual({ code: 0, signal: null });
});
