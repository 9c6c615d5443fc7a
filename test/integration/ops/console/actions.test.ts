import { randomBytes } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import { openDb } from "../../../../db/open.ts";
import { insertAuditEntries, listAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { findOperatorRequest } from "../../../../db/queries/operator-requests.ts";
import { makeFormToken } from "../../../../ops/console/csrf.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { newId } from "../../../../payments/ids.ts";
import { isTransient } from "../../../../payments/is-transient.ts";
import { createOperator, disableOperator } from "../../../../payments/operators/operators.ts";
import { requestedActions } from "../../../../payments/operators/requested-actions.ts";
import { runOperatorRequests } from "../../../../payments/operators/run-requests.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { memberNames } from "../../../../runtime/member-names.ts";
import { createHandlers } from "../../../../workers/handlers.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { fundBuyer, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { openConsole } from "../../../support/open-console.ts";
import { testActor } from "../../../support/test-actor.ts";
import { testEncryption } from "../../../support/test-deps.ts";
import { waitFor } from "../../../support/wait-for.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { db, merchantId } = fixture;
const { get, post, cookieOf, db: boardDb } = await openConsole(fixture);

/** Carries out requests as a worker does, with its database role. */
const workerDb = openDb(await roleUrl(fixture.databaseUrl, "worker"), { max: 2 });
addCleanup(() => workerDb.destroy());
const work = () => runOperatorRequests({ ...fixture.deps, db: workerDb });

const pathOf = (action: string, subject: string | number) => `/console/actions/${action}/${subject}`;
/** Returns the hidden inputs of the page that confirms an action. */
async function openForm(path: string): Promise<Record<string, string>> {
  const { statusCode, body } = await get(path);
  expect([path, statusCode]).toEqual([path, 200]);
  const inputs = body.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g);
  return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, value]));
}
/** Confirms an action on its page and lets a worker carry it out. Returns the page that shows what became of it. */
async function confirm(path: string, inputs: Record<string, string> = {}): Promise<string> {
  const sent = await post(path, { ...(await openForm(path)), ...inputs });
  expect([path, sent.statusCode, sent.body]).toMatchObject([path, 303, ""]);
  await work();
  return (await get(String(sent.headers.location))).body;
}
const newestAudit = async () => {
  const [entry] = await listAuditEntries(db, { day: undefined, subject: undefined, actor: "olga", limit: 1 });
  expect(entry?.after, "the entry names the request").toMatch(/"request":"oreq_[0-9a-f]{32}"/);
  return [entry?.action, entry?.subject, entry?.actor_kind, entry?.actor_address];
};
const requests = async () => (await db.selectFrom("operator_request").selectAll().execute()).length;

const buyer = await fundBuyer(chain);
const minutesAgo = (minutes: number) => new Date(fixture.deps.now().getTime() - minutes * 60_000);
let paid = "";
let late = "";
const exceptions: number[] = [];
beforeAll(async () => {
  paid = await fixture.pay(buyer, 250n);
  late = await fixture.create(300n);
  await fixture.verify(await fixture.attempt(late, buyer));
  await moveRows(db, "payment", { ids: [late], from: "processing", to: "failed", at: fixture.deps.now() });
  await fixture.relay();
  await fixture.watch();
  for (const amount of [4_000_000n, 5_000_000n]) await sendUsdc(chain, buyer, chain.keys.treasury.address, amount);
  await fixture.watch();
  exceptions.push(...(await listExceptions({ db }, 10)).map(({ id }) => id));
});

test("each action is carried out once by a worker, and its audit entry names the operator and the address", async () => {
  const [assigned = 0, returned = 0, booked = 0] = exceptions;
  expect(await confirm(pathOf("retry-payment", paid))).toMatch(/Done: .*due/);
  expect(await newestAudit()).toEqual(["payment.retried", paid, "operator", "127.0.0.1"]);

  expect(await confirm(pathOf("hold-payouts", merchantId))).toContain("Done: the payouts are held.");
  expect(await newestAudit()).toEqual(["merchant.payouts_held", merchantId, "operator", "127.0.0.1"]);
  expect((await get("/console/held")).body).toContain(`href="/console/merchants/${merchantId}"`);
  expect(await confirm(pathOf("release-payouts", merchantId))).toContain("Done: the payouts continue.");
  expect(await newestAudit()).toEqual(["merchant.payouts_released", merchantId, "operator", "127.0.0.1"]);

  expect(await confirm(pathOf("assign-exception", returned), { payment: paid })).toContain(
    "does not name this payment",
  );
  expect(await confirm(pathOf("assign-exception", assigned), { payment: late })).toContain("is credited");
  expect(await newestAudit()).toEqual(["exception.assigned", String(assigned), "operator", "127.0.0.1"]);
  expect(await confirm(pathOf("return-exception", returned))).toContain("waits for two operators");
  expect(await newestAudit()).toEqual(["exception.returned", String(returned), "operator", "127.0.0.1"]);
  expect(await confirm(pathOf("book-exception", booked), { as: "capital", note: "a top-up" })).toContain(
    "booked as capital",
  );
  expect(await newestAudit()).toEqual(["exception.booked", String(booked), "operator", "127.0.0.1"]);
  expect(await listExceptions({ db }, 10)).toEqual([]);

  const shown = (await get(pathOf("refund-payment", paid))).body;
  for (const part of ["2500000", buyer.address.toLowerCase()]) expect(shown.toLowerCase()).toContain(part);
  expect(await confirm(pathOf("refund-payment", paid), { amount: "1000000" })).toContain(
    "of 1.000000 USDC is created, and is sent in its turn",
  );
  const refund = await db.selectFrom("refund").select("id").where("payment_id", "=", paid).executeTakeFirstOrThrow();
  expect(await newestAudit()).toEqual(["refund.created", refund.id, "operator", "127.0.0.1"]);
  expect(fixture.enqueued.at(-1)).toMatchObject({ queue: "refund", job: { data: { refundIds: [refund.id] } } });
  expect(await confirm(pathOf("withdraw-refund", refund.id))).toContain("nothing is sent");
  expect(await newestAudit()).toEqual(["refund.withdrawn", refund.id, "operator", "127.0.0.1"]);
});

test("an action on what has changed since its page was shown is refused with a sentence, and changes nothing", async () => {
  const [booked = 0] = exceptions;
  expect(await confirm(pathOf("return-exception", booked))).toContain(
    `Nothing was changed: there is no open exception ${booked}`,
  );
  expect(await confirm(pathOf("release-payouts", merchantId))).toContain(
    "Nothing was changed: the payouts are not held",
  );
  expect(await confirm(pathOf("retry-booking", 77))).toContain("there is no failed booking 77");
  const form = await openForm(pathOf("refund-payment", paid));
  const amount = { unit: "iso4217/USD", value: 10n };
  unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId: paid, mode: "live", amount }));
  const sent = await post(pathOf("refund-payment", paid), { ...form, amount: "5" });
  await work();
  expect((await get(String(sent.headers.location))).body).toContain("has changed since the page was shown");
});

test("a refund of all that is left is refused when another operator has withdrawn a refund since the page was shown", async () => {
  const one = await fixture.pay(buyer, 100n);
  const amount = { unit: "iso4217/USD", value: 50n };
  const first = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId: one, mode: "live", amount }));
  const form = await openForm(pathOf("refund-payment", one));
  expect(await confirm(pathOf("withdraw-refund", first.refundId))).toContain("nothing is sent");
  const sent = await post(pathOf("refund-payment", one), { ...form, amount: "" });
  await work();
  expect((await get(String(sent.headers.location))).body).toContain("what is left to refund has changed");
  expect(await db.selectFrom("refund").select("state").where("payment_id", "=", one).execute()).toEqual([
    { state: "withdrawn" },
  ]);
});

test.each(memberNames(requestedActions))("the page of %s of a subject that is no id is not found", async (action) => {
  for (const subject of ["%00", "pay_%00", "a%20b", "x".repeat(100)]) {
    const { statusCode, body } = await get(pathOf(action, subject));
    expect([subject, statusCode]).toEqual([subject, 404]);
    expect(body).toContain("There is nothing with this id.");
  }
});

test("a note that the database cannot store is refused with a sentence, and nothing is requested", async () => {
  const path = pathOf("book-exception", exceptions[0] ?? 0);
  const before = await requests();
  const sent = await post(path, { ...(await openForm(path)), as: "capital", note: "a top-up\0" });
  expect(sent.statusCode).toBe(422);
  expect(sent.body).toContain("note: holds characters that are not valid text");
  expect(await requests()).toBe(before);
});

test("a form that is sent again with other input is refused, and the page says so", async () => {
  const path = pathOf("refund-payment", paid);
  const form = await openForm(path);
  expect((await post(path, { ...form, amount: "3" })).statusCode).toBe(303);
  const changed = await post(path, { ...form, amount: "4" });
  expect([changed.statusCode, changed.body.includes("This page has requested an action before")]).toEqual([409, true]);
  expect((await post(path, { ...form, amount: "3" })).statusCode).toBe(303);
  await work();
});

test("a resolved exception waits for no queue while it holds the audit log", async () => {
  await sendUsdc(chain, buyer, chain.keys.treasury.address, 6_000_000n);
  await fixture.watch();
  const [exception] = await listExceptions({ db }, 1);
  const path = pathOf("book-exception", exception?.id ?? 0);
  const shortage = { blocked_by: "inventory_short", blocked_at: fixture.deps.now(), due_at: fixture.deps.now() };
  await db.updateTable("payout_queue").set(shortage).where("merchant_id", "=", merchantId).execute();
  const sent = await post(path, { ...(await openForm(path)), as: "capital", note: "a top-up" });
  const id = String(sent.headers.location).split("/").at(-1) ?? "";
  let working: Promise<void> | undefined;
  await db.transaction().execute(async (other) => {
    await other.selectFrom("payout_queue").select("asset").where("merchant_id", "=", merchantId).forUpdate().execute();
    working = work();
    await waitFor(async () => (await findOperatorRequest(db, id))?.state === "done", { within: 10_000 });
    await insertAuditEntries(other, [
      { actor: testActor, action: "test.written", subject: id, before: null, after: null, at: fixture.deps.now() },
    ]);
  });
  await working;
  const queues = await db
    .selectFrom("payout_queue")
    .select("blocked_by")
    .where("merchant_id", "=", merchantId)
    .execute();
  expect(queues.map(({ blocked_by }) => blocked_by)).not.toContain("inventory_short");
});

test("an action is carried out although the sweep fails, and its page ends to wait after ten minutes", async () => {
  const path = pathOf("retry-payment", paid);
  const sent = await post(path, await openForm(path));
  const page = String(sent.headers.location);
  const enqueue = () => Promise.reject(new Error("Redis is not reachable"));
  const { sweep } = createHandlers({ ...fixture.deps, isTransient, db: workerDb, enqueue });
  await expect(sweep({ at: 1 }, new AbortController().signal)).rejects.toThrow("Redis is not reachable");
  expect((await get(page)).body).toContain("Done: ");
  const id = page.split("/").at(-1) ?? "";
  const late = { state: "requested", outcome: null, ended_at: null, requested_at: minutesAgo(11) } as const;
  await db.updateTable("operator_request").set(late).where("id", "=", id).execute();
  const { body } = await get(page);
  expect([body.includes("<h1>Expired</h1>"), body.includes('http-equiv="refresh"')]).toEqual([true, false]);
  await work();
  expect((await get(page)).body).toContain("it was not carried out within 10 minutes");
});

test("two workers carry out each request once, and a request that one of them has does not hold up the other", async () => {
  const path = pathOf("retry-payment", paid);
  const filter = { day: undefined, subject: paid, actor: "olga", limit: 100 };
  const before = (await listAuditEntries(db, filter)).length;
  const sent = await Promise.all([1, 2, 3, 4].map(async () => post(path, await openForm(path))));
  expect(sent.map(({ statusCode }) => statusCode)).toEqual([303, 303, 303, 303]);
  await Promise.all([work(), work()]);
  expect((await listAuditEntries(db, filter)).length).toBe(before + 4);
});

test("a form that is sent twice, also at the same moment, acts once", async () => {
  const path = pathOf("refund-payment", paid);
  const form = { ...(await openForm(path)), amount: "7" };
  const before = await requests();
  const sent = await Promise.all([post(path, form), post(path, form), post(path, form)]);
  expect(new Set(sent.map(({ headers }) => headers.location)).size).toBe(1);
  await work();
  await post(path, form);
  await work();
  expect(await requests()).toBe(before + 1);
  const made = await db
    .selectFrom("refund")
    .select("id")
    .where("payment_id", "=", paid)
    .where("amount", "=", 7n)
    .execute();
  expect(made.length).toBe(1);
});

test.each(memberNames(requestedActions))("a viewer can neither open nor send the form of %s", async (action) => {
  const path = pathOf(action, action.includes("payment") ? paid : merchantId);
  const before = await requests();
  expect((await get(path, "vera")).statusCode).toBe(403);
  // A viewer gets no form, but has what is needed to compute the token of their own session.
  const token = makeFormToken((await cookieOf("vera")).split("=")[1] ?? "");
  const sent = await post(path, { token, request: newId("oreq", fixture.deps.now()) }, "vera");
  expect([sent.statusCode, sent.body.includes("A viewer can change nothing.")]).toEqual([403, true]);
  expect(await requests()).toBe(before);
  for (const url of [`/console/payments/${paid}`, `/console/merchants/${merchantId}`, "/console/exceptions"])
    expect((await get(url, "vera")).body).not.toContain("/console/actions/");
});

test("a form without the token of its own session, or from another site, is refused", async () => {
  const path = pathOf("retry-payment", paid);
  const { token = "", ...form } = await openForm(path);
  const foreign = makeFormToken((await cookieOf("anna")).split("=")[1] ?? "");
  const before = await requests();
  for (const given of [{}, { token: "" }, { token: foreign }, { token: `${token}x` }])
    expect((await post(path, { ...form, ...given })).statusCode).toBe(403);
  for (const headers of [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: "https://evil.example" },
  ])
    expect((await post(path, { ...form, token }, "olga", headers)).statusCode).toBe(403);
  expect(await requests()).toBe(before);
});

test("input that no action accepts is refused before it is requested", async () => {
  const before = await requests();
  for (const [path, inputs] of [
    [pathOf("refund-payment", paid), { amount: "-1" }],
    [pathOf("refund-payment", paid), { amount: "1e3" }],
    [pathOf("assign-exception", 1), { payment: "pay_1" }],
    [pathOf("book-exception", 1), { as: "capital", note: " " }],
    [pathOf("book-exception", 1), { as: "treasury", note: "x" }],
    [pathOf("retry-payment", "pay_1"), {}],
    [pathOf("retry-payment", paid), { more: "x" }],
    [pathOf("retry-payment", paid), { request: "1" }],
  ] as const)
    expect([path, inputs, (await post(path, { ...(await openForm(path)), ...inputs })).statusCode]).toEqual([
      path,
      inputs,
      422,
    ]);
  expect((await get(pathOf("toString", paid))).statusCode).toBe(404);
  expect(await requests()).toBe(before);
});

/** Requests an action as a board does that an attacker has taken over: with its database role, and without its checks. */
const requestAs = async (operator: string, more: object = {}, requestedAt?: Date) => {
  const id = newId("oreq", fixture.deps.now());
  const row = {
    id,
    operator,
    address: "192.0.2.1",
    action: "hold-payouts",
    subject: merchantId,
    args: "{}",
  };
  await boardDb
    .insertInto("operator_request")
    .values({ ...row, ...more })
    .execute();
  if (requestedAt)
    await db.updateTable("operator_request").set({ requested_at: requestedAt }).where("id", "=", id).execute();
  await work();
  const ended = await db.selectFrom("operator_request").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  return [ended.state, ended.outcome];
};

test("a request in the name of an operator who has not signed in is refused, and a forged session is in the log before it", async () => {
  const { encryptTotpSecret } = testEncryption();
  const otto = { actor: testActor, name: "otto", role: "operator" } as const;
  unwrap(await createOperator({ ...fixture.deps, encryptTotpSecret }, otto));
  const retry = { action: "retry-payment", subject: paid };
  const refused = ["refused", "otto had not signed in within the 12 hours before"];
  expect(await requestAs("otto", retry)).toEqual(refused);
  const session = { token_hash: randomBytes(32), operator: "otto", address: "192.0.2.1" };
  await boardDb.insertInto("operator_session").values(session).execute();
  expect(await requestAs("otto", retry, minutesAgo(1)), "a sign-in after the request").toEqual(refused);
  expect(await requestAs("otto", retry)).toEqual(["done", expect.any(String)]);
  const entries = await listAuditEntries(db, { day: undefined, subject: undefined, actor: "otto", limit: 10 });
  expect(entries.map(({ action }) => action)).toEqual(["payment.retried", "operator.signed_in"]);
});

test("a worker refuses a request of a viewer or a disabled operator, an unknown action, and one that is too old", async () => {
  expect(await requestAs("vera")).toEqual(["refused", "vera may not change anything"]);
  expect(await requestAs("olga", { action: "constructor" })).toEqual(["refused", "there is no such action"]);
  expect(await requestAs("olga", { subject: "mrch_1" })).toEqual([
    "refused",
    expect.stringContaining("subject: expected an id"),
  ]);
  expect(await requestAs("olga", {}, minutesAgo(11))).toEqual(["refused", expect.stringContaining("10 minutes")]);
  const early = { requested_at: minutesAgo(-300) };
  await expect(requestAs("olga", early), "Postgres writes the time of a request").rejects.toMatchObject({
    code: "42501",
  });
  unwrap(await disableOperator(fixture.deps, { actor: testActor, name: "olga" }));
  expect(await requestAs("olga")).toEqual(["refused", "olga may not change anything"]);
  const merchant = await db
    .selectFrom("merchant")
    .select("payouts_held_at")
    .where("id", "=", merchantId)
    .executeTakeFirst();
  expect(merchant?.payouts_held_at).toBeNull();
});

test("workers carry out 60 requests of one operator within an hour, and count them", async () => {
  const count = async () => (await fixture.deps.metrics.operatorRequests.get()).values[0]?.value ?? 0;
  const before = await count();
  const done = Array.from({ length: 60 }, () => ({
    id: newId("oreq", fixture.deps.now()),
    operator: "anna",
    address: "192.0.2.1",
    action: "hold-payouts",
    subject: merchantId,
    args: "{}",
    requested_at: minutesAgo(50),
    state: "done" as const,
    ended_at: minutesAgo(50),
  }));
  await db.insertInto("operator_request").values(done).execute();
  expect(await requestAs("anna")).toEqual(["refused", expect.stringContaining("60 requests of one operator")]);
  await db
    .updateTable("operator_request")
    .set({ requested_at: minutesAgo(61) })
    .where("operator", "=", "anna")
    .execute();
  expect(await requestAs("anna")).toEqual(["done", "the payouts are held"]);
  expect(await count()).toBe(before + 2);
});

test("the board may write nothing of payments, money and settings, and cannot decide a request", async () => {
  for (const table of [
    "payment",
    "transfer",
    "settlement",
    "refund",
    "merchant",
    "ledger_group",
    "ledger_entry",
    "merchant_balance",
  ] as const)
    await expect(boardDb.insertInto(table).defaultValues().execute()).rejects.toMatchObject({ code: "42501" });
  await expect(boardDb.updateTable("operator_request").set({ state: "done" }).execute()).rejects.toMatchObject({
    code: "42501",
  });
});
