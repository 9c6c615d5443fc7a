import { sql } from "kysely";
import { expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { listDueEvents } from "../../../db/queries/webhook-deliveries.ts";
import { type Machine, machines } from "../../../db/states.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { roleUrl } from "../../support/database-roles.ts";
import { insertMerchant, insertPaymentRow } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";

// What a thief who has the api's database login can have workers sign as the service's events.

const { db, url } = await openTestDb(4);
const asApi = openDb(await roleUrl(url, "api"), { max: 2, applicationName: "thief" });
addCleanup(() => asApi.destroy());
const merchant = await insertMerchant(db);

const eventsOf = async (paymentId: string) => {
  const events = db.selectFrom("webhook_event").select("type").where("payment_id", "=", paymentId);
  return (await events.orderBy("sequence").execute()).map(({ type }) => type);
};

test.each(["settled", "succeeded", "failed", "requires_action; drop"])(
  "the api's login cannot move a payment that waits for its buyer to %s",
  async (state) => {
    const id = await insertPaymentRow(db, merchant);
    const move = sql`update payment set state = ${state}, state_version = 1, updated_at = now() where id = ${id}`;
    await expect(move.execute(asApi)).rejects.toThrow(`payment cannot move from requires_action to ${state}`);
    expect(await eventsOf(id)).toEqual(["payment.created"]);
  },
);

test("the api's login cannot write the state of a refund", async () => {
  for (const state of ["paying", "paid", "due"])
    await expect(sql`update refund set state = ${state}`.execute(asApi)).rejects.toMatchObject({ code: "42501" });
});

test.each(["payment", "attempt", "refund", "destination_change"] satisfies Machine[])(
  "the database allows the moves of a %s that the machine lists, and no other",
  async (machine) => {
    const { rows } = await sql<{ condition: string }>`
      select pg_get_triggerdef(oid) as condition from pg_trigger where tgname = ${`${machine}_known_moves`}`.execute(
      db,
    );
    const states = [...(rows[0]?.condition ?? "").matchAll(/'(\w+)'::text/g)].map(([, state]) => state);
    const pairs = states.flatMap((from, index) => (index % 2 === 0 ? [`${from} to ${states[index + 1]}`] : []));
    const { new: _inserted, ...moves } = machines[machine];
    const listed = Object.entries<readonly string[]>(moves).flatMap(([from, next]) =>
      next.map((to) => `${from} to ${to}`),
    );
    expect(pairs.toSorted()).toEqual(listed.toSorted());
  },
);

test("a delivery that the api's login has written for another merchant's endpoint is not sent", async () => {
  const victim = await insertMerchant(db);
  const endpointOf = async (accountId: string, mode: string) => {
    const id = `we_${accountId.slice(-20)}${mode}`;
    await sql`insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
      values (${id}, ${accountId}, ${mode}, 'https://shop.example.test/', false, 'k', 's', now())`.execute(db);
    return id;
  };
  const [own, other, test] = [
    await endpointOf(merchant.accountId, "live"),
    await endpointOf(victim.accountId, "live"),
    await endpointOf(merchant.accountId, "test"),
  ];
  const paymentId = await insertPaymentRow(db, merchant);
  const event = await db
    .selectFrom("webhook_event")
    .select("id")
    .where("payment_id", "=", paymentId)
    .executeTakeFirstOrThrow();
  for (const endpoint of [other, test])
    await sql`insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
      values (${event.id}, ${endpoint}, 1, now(), now())`.execute(asApi);
  const dueOf = async (endpointId: string) =>
    (await listDueEvents(db, { endpointId, now: new Date(Date.now() + 60_000), without: [], limit: 10 })).map(
      ({ id }) => id,
    );
  expect(await dueOf(own)).toEqual([event.id]);
  expect([await dueOf(other), await dueOf(test)]).toEqual([[], []]);
});
