import { type CompiledQuery, sql } from "kysely";
import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { selectDeliveries } from "../../../../db/queries/webhook-deliveries.ts";
import { selectEventsAfter } from "../../../../db/queries/webhook-events.ts";
import { selectPeriod } from "../../../../db/queries/webhook-replays.ts";
import { findEventPayload, listEvents } from "../../../../payments/webhooks/list-events.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { insertMerchant, insertPaymentRow } from "../../../support/insert-rows.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { createDatabase } from "../../../support/test-database.ts";

const chain = await startChain();
const databaseUrl = await createDatabase();
const db = openDb(databaseUrl, { max: 6 });
addCleanup(() => db.destroy());

/** Reads everything after a cursor, as a merchant's server does. */
async function follow(accountId: string, from?: string) {
  const events = [];
  let cursor = from;
  for (;;) {
    const args = { accountId, mode: "live" as const, cursor, limit: 3, payload: "thin" as const };
    const page = unwrap(await listEvents({ db }, args));
    events.push(...page.items);
    cursor = page.nextCursor ?? undefined;
    if (!page.hasMore) return { events, cursor };
  }
}

const paymentsOf = (events: { data: object }[]) =>
  events.map(({ data }) => (data as { payment_id: string }).payment_id);

test("a payment's events are listed in their order without any endpoint, as their webhooks are", async () => {
  const fixture = await makeMerchantFixture(chain);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const args = { accountId: fixture.accountId, mode: "live" as const, limit: 10, payload: "full" as const };
  const listed = unwrap(await listEvents(fixture.deps, args));
  const items = listed.items.filter(({ type }) => type.startsWith("payment."));
  expect(items.map(({ type }) => type)).toEqual(["created", "processing", "succeeded"].map((one) => `payment.${one}`));
  expect(items.at(-1)?.data).toMatchObject({ payment_id: paymentId, status: "succeeded", payment_state_version: 2 });
  const id = items.at(-1)?.id ?? "";
  expect(unwrap(await findEventPayload(fixture.deps, { ...args, id }))).toEqual(items.at(-1));
});

test("a reader that starts at the end gets later events only, however many were never read before", async () => {
  const merchant = await insertMerchant(db);
  const args = { accountId: merchant.accountId, mode: "live", start: "end", limit: 3, payload: "thin" } as const;
  expect(unwrap(await listEvents({ db }, args))).toEqual({ items: [], nextCursor: null, hasMore: false });
  for (let count = 0; count < 5; count += 1) await insertPaymentRow(db, merchant, {});
  const { items, nextCursor } = unwrap(await listEvents({ db }, args));
  expect(items).toEqual([]);
  const later = await insertPaymentRow(db, merchant, {});
  expect(paymentsOf((await follow(merchant.accountId, nextCursor ?? undefined)).events)).toEqual([later]);
});

test("a reader gets an event that commits after later ones, and no event twice", async () => {
  const merchant = await insertMerchant(db);
  const first = await insertPaymentRow(db, merchant, {});
  const late = Promise.withResolvers<void>();
  const inserted = Promise.withResolvers<string>();
  const slow = db.transaction().execute(async (own) => {
    inserted.resolve(await insertPaymentRow(own, merchant, {}));
    await late.promise;
  });
  const hidden = await inserted.promise;
  const third = await insertPaymentRow(db, merchant, {});
  const before = await follow(merchant.accountId);
  expect(paymentsOf(before.events)).toEqual([first, third]);
  late.resolve();
  await slow;
  const after = await follow(merchant.accountId, before.cursor);
  expect(paymentsOf(after.events)).toEqual([hidden]);
  expect((await follow(merchant.accountId, after.cursor)).events).toEqual([]);
});

test("readers that run concurrently with writers each get every event once and in the same order", async () => {
  const merchant = await insertMerchant(db);
  const written: string[] = [];
  const state = { writing: true };
  const write = async () => {
    for (let count = 0; count < 40; count += 1) written.push(await insertPaymentRow(db, merchant, {}));
  };
  const read = async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let more = true; more; ) {
      const isLast = !state.writing;
      const page = await follow(merchant.accountId, cursor);
      seen.push(...paymentsOf(page.events));
      cursor = page.cursor;
      more = !isLast;
    }
    return seen;
  };
  const readers = [read(), read(), read()];
  await Promise.all([write(), write()]);
  state.writing = false;
  const [one, two, three] = await Promise.all(readers);
  expect([...(one ?? [])].sort()).toEqual([...written].sort());
  expect(two).toEqual(one);
  expect(three).toEqual(one);
});

test("a cursor of another account, and of an event that is lost, are refused", async () => {
  const [one, other] = [await insertMerchant(db), await insertMerchant(db)];
  await insertPaymentRow(db, one, {});
  const { cursor = "" } = await follow(one.accountId);
  const args = { mode: "live" as const, limit: 3, payload: "thin" as const };
  const [position] = JSON.parse(Buffer.from(cursor, "base64url").toString());
  const lost = Buffer.from(JSON.stringify([position, `evt_${"0".repeat(32)}`])).toString("base64url");
  for (const call of [
    { ...args, accountId: other.accountId, cursor },
    { ...args, accountId: one.accountId, mode: "test" as const, cursor },
    { ...args, accountId: one.accountId, cursor: lost },
    { ...args, accountId: one.accountId, cursor: "x" },
  ])
    expect(await listEvents({ db }, call)).toMatchObject({ ok: false, code: "params_validation" });
});

test("the lists of events and deliveries and the replay of a period read their indexes", async () => {
  const plans = await db.transaction().execute(async (own) => {
    await sql`set local enable_seqscan = off`.execute(own);
    const explain = async (query: CompiledQuery) => {
      const { rows } = await own.executeQuery<{ "QUERY PLAN": string }>({ ...query, sql: `explain ${query.sql}` });
      return rows.map((row) => row["QUERY PLAN"]).join("\n");
    };
    const owner = { accountId: "acct_1", mode: "live" as const };
    const since = new Date(0);
    const period = { endpointId: "whe_1", since, until: new Date(), after: undefined, limit: 5 };
    return [
      await explain(selectEventsAfter(own, { ...owner, after: 5, limit: 5 }).compile()),
      await explain(selectDeliveries(own, { endpointId: "whe_1", limit: 5 }).compile()),
      await explain(selectDeliveries(own, { endpointId: "whe_1", state: "given_up", limit: 5 }).compile()),
      await explain(selectDeliveries(own, { endpointId: "whe_1", paymentId: "pay_1", limit: 5 }).compile()),
      await explain(selectPeriod(period).compile(own)),
    ];
  });
  const indexes = [
    "webhook_event_position",
    "webhook_delivery_listed",
    "webhook_delivery_unaccepted",
    "webhook_event_payment",
    "webhook_event_at",
  ];
  for (const [place, index] of indexes.entries()) expect(plans[place]).toContain(index);
});
