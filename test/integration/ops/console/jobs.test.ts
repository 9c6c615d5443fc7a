import { Queue, UnrecoverableError, Worker } from "bullmq";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { listAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { makeFormToken } from "../../../../ops/console/csrf.ts";
import { errorKey } from "../../../../ops/console/jobs-page.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import {
  insertMerchant,
  insertPaymentRows,
  insertSettlementRow,
  insertTransferRow,
} from "../../../support/insert-rows.ts";
import { hostileText, openConsole } from "../../../support/open-console.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { redisPrefix } from "../../../support/redis-prefix.ts";
import { waitFor } from "../../../support/wait-for.ts";

const { db, url: databaseUrl } = await openTestDb(4);
const { url: redisUrl, prefix } = redisPrefix();
const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
const queue = new Queue("relay-transfers", { connection, prefix });
addCleanup(async () => {
  await queue.close();
  connection.disconnect();
});
const { get, post, cookieOf, open } = await openConsole(
  { db, databaseUrl, deps: { now: () => new Date() } },
  { queues: [queue] },
);

const merchant = await insertMerchant(db);
const noGas = "ChainError [wrong_key]: a private key does not belong to the address in the networks file";
const hostileReason = `${hostileText}\nat a second line`;
const transfers = await Promise.all([noGas, noGas, hostileReason].map(() => insertTransferRow(db, merchant)));
const jobOf = (index: number) => `relay-transfers-${transfers[index]?.id}-0`;
/** Lets every job fail: the first two with the same error. */
async function failAll() {
  const reasons = new Map([noGas, noGas, hostileReason].map((reason, index) => [jobOf(index), reason]));
  const worker = new Worker(queue.name, ({ id }) => Promise.reject(new UnrecoverableError(reasons.get(id ?? ""))), {
    connection,
    prefix,
  });
  await waitFor(async () => (await queue.getFailedCount()) === transfers.length, { within: 10_000 });
  await worker.close();
}
for (const [index, { id: transferId }] of transfers.entries())
  await queue.add(queue.name, { chain: "eip155:31337", transferId }, { jobId: jobOf(index) });
await failAll();

const states = () => Promise.all(transfers.map((_one, index) => queue.getJobState(jobOf(index))));
const token = async (as: "olga" | "anna" = "olga") =>
  (await get("/console/retries/relay-transfers", as)).body.match(/name="token" value="([^"]*)"/)?.[1] ?? "";

test("failed jobs are listed by error with their component and the payments that they belong to", async () => {
  const { body } = await get("/console/jobs");
  const row = body.split("<tr>").find((one) => one.includes("wrong_key")) ?? "";
  for (const part of ["lanes", "a private key does not belong", ">2<"]) expect(row).toContain(part);
  for (const { paymentId } of transfers.slice(0, 2)) expect(row).toContain(`href="/console/payments/${paymentId}"`);
  expect(body).not.toContain("<script");
});

test("a retry of several jobs is confirmed on a page that says how many jobs and payments it concerns", async () => {
  const path = `/console/retries/relay-transfers?error=${errorKey(noGas)}`;
  expect((await get("/console/jobs")).body).toContain(`href="${path}"`);
  const { body } = await get(path);
  expect(body).toMatch(
    /<dt>Failed jobs<\/dt><dd><span class="number">2<.*<dt>Payments<\/dt><dd><span class="number">2</s,
  );
  expect(body).toContain("Retry 2 jobs");
  expect((await get("/console/retries/relay-transfers")).body).toContain("Retry 3 jobs");
  expect((await get("/console/retries/relay-transfers?error=0")).statusCode).toBe(404);
  expect((await get(path, "vera")).statusCode).toBe(403);
});

test("all payments of an error are read page by page", async () => {
  const busy = await insertMerchant(db);
  await insertPaymentRows(db, busy, { mode: "live", count: 200 });
  const settlement = await insertSettlementRow(db, busy);
  const paid = db.updateTable("payment").set({ settlement_id: settlement }).where("merchant_id", "=", busy.merchantId);
  const many = (await paid.returning("id").execute()).map(({ id }) => id);
  const other = new Queue("settle", { connection, prefix });
  await other.add("settle", { settlementIds: [settlement] }, { jobId: "settle-1" });
  const worker = new Worker(other.name, () => Promise.reject(new UnrecoverableError("x")), { connection, prefix });
  await waitFor(async () => (await other.getFailedCount()) === 1, { within: 10_000 });
  await worker.close();
  const board = await open({ queues: [other] });
  const headers = { cookie: await cookieOf("olga"), accept: "text/html" };
  const read = async (url: string) => (await board.inject({ url, headers })).body;
  const found = new Set<string>();
  const first = /href="(\/console\/jobs\/settle\/errors\/\w+)">all 201</.exec(await read("/console/jobs"))?.[1] ?? "";
  for (let path = first; path !== ""; ) {
    const body = await read(path);
    for (const [id] of body.matchAll(/pay_[0-9a-f]{32}(?=<\/a>)/g)) found.add(id);
    const more = /href="(\?after=\w+)"/.exec(body)?.[1];
    path = more ? `${first}${more}` : "";
  }
  expect([...found].sort()).toEqual(many.sort());
  await other.close();
});

test("the page of a job names its payment, its component, and its error in words with the code", async () => {
  const { body } = await get(`/console/jobs/relay-transfers/${jobOf(0)}`);
  for (const part of [noGas, "lanes", `href="/console/payments/${transfers[0]?.paymentId}"`, String(transfers[0]?.id)])
    expect(body).toContain(part);
  expect((await get("/console/jobs/relay-transfers/other")).statusCode).toBe(404);
  expect((await get(`/console/jobs/other/${jobOf(0)}`)).statusCode).toBe(404);
});

test("a viewer, a form without the session's token and one of another site can run nothing again", async () => {
  const form = { queue: "relay-transfers", token: await token() };
  expect((await get("/console/jobs", "vera")).body).not.toContain("<form");
  // A viewer gets no form, but has what is needed to compute the token of their own session.
  const own = (await cookieOf("vera")).split("=")[1] ?? "";
  for (const sent of [
    await post("/console/jobs", { ...form, token: makeFormToken(own) }, "vera"),
    await post("/console/jobs", { ...form, token: await token("anna") }),
    await post("/console/jobs", { queue: "relay-transfers" }),
    await post("/console/jobs", form, "olga", { "sec-fetch-site": "cross-site" }),
  ])
    expect(sent.statusCode).toBe(403);
  expect(await states()).toEqual(["failed", "failed", "failed"]);
});

test("a retry that cannot be recorded runs nothing again", async () => {
  const send = async (over: Parameters<typeof open>[0]) =>
    (await open(over)).inject({
      method: "POST",
      url: "/console/jobs",
      headers: { cookie: await cookieOf("olga"), "content-type": "application/x-www-form-urlencoded" },
      payload: new URLSearchParams({ queue: "relay-transfers", token: await token() }).toString(),
    });
  const answer = await send({ recordRetry: () => Promise.reject(new Error("no database")) });
  expect(answer.statusCode).toBe(500);
  expect(await states()).toEqual(["failed", "failed", "failed"]);
});

test("one job, all jobs with the same error, or a whole queue run again, each with an entry in the audit log", async () => {
  const retry = async (form: Record<string, string>) =>
    (await post("/console/jobs", { queue: "relay-transfers", token: await token(), ...form })).statusCode;
  expect(await retry({ job: jobOf(2) })).toBe(303);
  expect(await states()).toEqual(["failed", "failed", "waiting"]);
  expect(await retry({ job: jobOf(2) }), "the job is not failed any more").toBe(409);
  await failAll();
  expect(await retry({ error: errorKey(noGas) })).toBe(303);
  expect(await states()).toEqual(["waiting", "waiting", "failed"]);
  expect((await get("/console/jobs?retried=2&of=2")).body).toContain("2 jobs run again.");
  await failAll();
  expect(await retry({})).toBe(303);
  expect(await states()).toEqual(["waiting", "waiting", "waiting"]);
  const entries = await listAuditEntries(db, { day: undefined, subject: undefined, actor: "olga", limit: 3 });
  expect(entries.map(({ action, subject, after }) => [action, subject, after])).toEqual([
    ["failed_jobs.retried", "relay-transfers", '{"jobs":3}'],
    ["failed_jobs.retried", "relay-transfers", '{"jobs":2}'],
    ["job.retried", `relay-transfers/${jobOf(2)}`, '{"jobs":1}'],
  ]);
});
