import { sql } from "kysely";
import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { reportNetworks } from "../../../../transfers/report-networks.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { hostileText, openConsole } from "../../../support/open-console.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { testActor } from "../../../support/test-actor.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { registerEndpoint } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { db, merchantId } = fixture;
const { get, board, open, cookieOf } = await openConsole(fixture);

const buyer = await fundBuyer(chain);
await registerEndpoint(fixture, "http://127.0.0.1:9/hooks?token=s3cret");
const paid = await fixture.pay(buyer, 250n);
await fixture.settle((await fixture.settlementOf(paid)).id);
await fixture.relay();
await fixture.watch();
const refund = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId: paid, mode: "live" }));
const relayed = await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain) });
await relayed.relay();
await fixture.watch();
const workerDb = openDb(await roleUrl(fixture.databaseUrl, "worker"), { max: 1 });
addCleanup(() => workerDb.destroy());
addCleanup(reportNetworks({ ...fixture.deps, db: workerDb }));
await waitFor(async () => (await db.selectFrom("rpc_endpoint").select("name").execute()).length > 0, {
  within: 10_000,
});
const hostile = await fixture.create(100n, {
  referenceId: hostileText,
  description: "for Alice of Hidden Lane 1",
  metadata: { buyer: "alice@hidden.test" },
});
const path = (id: string) => `/console/payments/${id}`;

test("the page of a payment shows its timeline, attempts, transfers, transactions, payout, refunds, ledger and webhooks", async () => {
  const { statusCode, body, headers } = await get(path(paid));
  expect(statusCode).toBe(200);
  const transaction = await db.selectFrom("transaction").selectAll().where("nonce", "=", 0).executeTakeFirstOrThrow();
  const [attempt] = await db.selectFrom("attempt").select("id").where("payment_id", "=", paid).execute();
  const settlement = await fixture.settlementOf(paid);
  const parts = [
    ["Timeline", "requires_action"],
    ["Attempts", attempt?.id],
    ["Transfers", "settlement"],
    ["Transactions", transaction.hash, transaction.fee],
    ["Payout", settlement.id, settlement.destination],
    ["Refunds", refund.refundId],
    ["Ledger", `payable:${merchantId}`],
    ["Webhooks", "payment.succeeded"],
  ].flat();
  for (const part of parts) expect(body).toContain(String(part));
  expect(headers["cache-control"]).toBe("no-store");
  expect(headers["content-security-policy"]).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/=]+'; img-src data:; form-action 'self'/,
  );
});

test("a search finds a payment by its id, reference, transaction, payer, payout and refund, and a merchant by id and name", async () => {
  const { hash } = await db.selectFrom("transaction").select("hash").where("nonce", "=", 0).executeTakeFirstOrThrow();
  const settlement = await fixture.settlementOf(paid);
  const account = `${chain.id}:${buyer.address}`;
  for (const q of [
    paid,
    hash,
    buyer.address,
    buyer.address.toLowerCase(),
    account,
    ` ${settlement.id} `,
    refund.refundId,
  ]) {
    const answer = await get(`/console?${new URLSearchParams({ q })}`);
    expect([q, answer.statusCode, answer.headers.location]).toEqual([q, 303, path(paid)]);
  }
  const byReference = await get(`/console?${new URLSearchParams({ q: hostileText })}`);
  expect(byReference.headers.location).toBe(path(hostile));
  for (const q of [merchantId, "sHop"])
    expect((await get(`/console?${new URLSearchParams({ q })}`)).body).toContain(
      `href="/console/merchants/${merchantId}"`,
    );
  expect((await get(`/console/merchants/${merchantId}`)).body).toContain(`href="${path(paid)}"`);
});

test("a search finds a payment by the transaction with which the buyer or another relayer has paid, through an index", async () => {
  const { tx_id } = await db
    .selectFrom("payment")
    .select("tx_id")
    .where("id", "=", relayed.paymentId)
    .executeTakeFirstOrThrow();
  const answer = await get(`/console?${new URLSearchParams({ q: String(tx_id) })}`);
  expect(answer.headers.location).toBe(path(relayed.paymentId));
  const rows = await db
    .selectFrom("payment")
    .select(["id", "sent_by_others"])
    .where("state", "=", "succeeded")
    .execute();
  expect(new Map(rows.map((row) => [row.id, row.sent_by_others]))).toEqual(
    new Map([
      [paid, false],
      [relayed.paymentId, true],
    ]),
  );
});

test("amounts are decimal numbers with their symbol, and the minor units are their titles", async () => {
  const { body } = await get(path(paid));
  for (const part of ['title="250 minor units">2.50 USD<', 'title="2500000 minor units">2.500000 USDC<'])
    expect(body).toContain(part);
  await db.updateTable("asset_unit").set({ asset: "other" }).execute();
  expect((await get(path(paid))).body).toContain("2500000 minor units<");
});

/** Reports as a worker does that starts and ends. Returns the versions of the rows of units that it has left. */
async function startAndEndWorker(owner: string): Promise<unknown[]> {
  const end = reportNetworks({ ...fixture.deps, db: workerDb, owner });
  const reported = () => db.selectFrom("rpc_endpoint").select("name").where("worker", "=", owner).execute();
  await waitFor(async () => (await reported()).length > 0, { within: 10_000 });
  const { rows } = await sql`select asset, xmin::text from asset_unit order by asset`.execute(db);
  await end();
  expect(await reported()).toEqual([]);
  return rows;
}

test("RPC endpoints are listed by name with how live workers reach them, and without their URLs", async () => {
  const units = await startAndEndWorker("first");
  expect(await startAndEndWorker("second")).toEqual(units);
  await sql`insert into rpc_endpoint select chain, name, 'killed', reported_at - interval '80 seconds', answered_at, failed_at,
    error, calls, failures, height from rpc_endpoint`.execute(db);
  const { network } = [...fixture.deps.chains.values()][0] ?? {};
  const { body } = await get("/console/lanes");
  const [{ name = "", url = "none" } = {}] = network?.rpc ?? [];
  const row = body.split("<tr>").find((one) => one.includes(`<td>${name}</td>`)) ?? "";
  expect(row).toMatch(/1 of 1/);
  expect(body).not.toContain(new URL(url).host);
});

test("text that strangers wrote is shown as text, links nowhere, and what merchants write about buyers is not shown", async () => {
  await db.updateTable("merchant").set({ name: hostileText }).where("id", "=", merchantId).execute();
  await db.updateTable("transfer").set({ last_error: hostileText }).where("payment_id", "=", paid).execute();
  const pages = [
    path(hostile),
    path(paid),
    `/console/merchants/${merchantId}`,
    `/console?${new URLSearchParams({ q: `${hostileText}?` })}`,
  ];
  for (const url of pages) {
    const { body } = await get(url);
    expect(body).toContain("&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(body.replaceAll(/"[^"]*"/g, "")).not.toMatch(/<(script|img)|<[^>]*\son\w+=/);
    for (const [, href = ""] of body.matchAll(/(?:href|src|action)="([^"]*)"/g))
      expect(href).toMatch(/^(\/(?!\/)|data:,$)/);
    expect(body).not.toMatch(/Hidden Lane|hidden\.test/);
  }
});

test("any search text is answered, and one that takes too long is stopped with a sentence", async () => {
  for (const q of [
    "",
    "\0",
    "%",
    "'; drop table payment; --",
    "x".repeat(9_000),
    "pay_",
    "mrch_\u202e",
    "0x",
    "🧾".repeat(200),
  ]) {
    const answer = await get(`/console?${new URLSearchParams({ q })}`);
    expect([q.slice(0, 20), answer.statusCode]).toEqual([q.slice(0, 20), 200]);
  }
  expect((await get("/console?q=a&q=b")).statusCode).toBe(200);
  for (const id of ["pay_\u0000", "..%2f..", "x".repeat(90)])
    expect((await get(path(encodeURIComponent(id)))).statusCode).toBe(404);
  const stopped = await db.transaction().execute(async (own) => {
    await sql`lock table payment in access exclusive mode`.execute(own);
    return get("/console?q=some-reference");
  });
  expect([stopped.statusCode, stopped.body.includes("The search took too long")]).toEqual([503, true]);
});

test("while the database cannot be reached, a page says so and asks to try again", async () => {
  const db = openDb("postgres://pay_board@127.0.0.1:9/none", { max: 1 });
  addCleanup(() => db.destroy());
  const alone = await open({ db });
  const headers = { cookie: await cookieOf("olga"), accept: "text/html" };
  const { statusCode, headers: answered, body } = await alone.inject({ url: "/console", headers });
  expect([statusCode, answered["retry-after"], answered["content-type"]]).toEqual([
    503,
    "5",
    "text/html; charset=utf-8",
  ]);
  expect([body.includes("cannot be reached"), body.includes("/console/lanes")]).toEqual([true, false]);
});

test("the console shows nothing without a session, and a viewer sees the pages", async () => {
  for (const url of ["/console", path(paid), `/console/merchants/${merchantId}`]) {
    expect((await board.inject({ url })).statusCode).toBe(401);
    const page = await board.inject({ url, headers: { accept: "text/html" } });
    expect([page.statusCode, page.headers.location]).toEqual([303, "/login"]);
  }
  expect((await get(path(paid), "vera")).statusCode).toBe(200);
});
