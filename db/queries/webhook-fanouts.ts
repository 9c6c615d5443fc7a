import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** The events of one settlement that are still to be written for one endpoint: those of payments with an id above `after_payment`. */
export type Fanout = { settlement_id: string; at: Date; after_payment: string };

/** Locks an endpoint's unfinished fan-outs until the commit and returns them, oldest first. Skips those that are locked elsewhere. */
export async function lockFanouts(db: Db, args: { endpointId: string; limit: number }): Promise<Fanout[]> {
  const { rows } = await sql<Fanout>`
    select settlement_id, at, after_payment from webhook_fanout
    where endpoint_id = ${args.endpointId} order by at, settlement_id limit ${args.limit}
    for update skip locked`.execute(db);
  return rows;
}

/** Returns the next payments of these fan-outs, in the order of the fan-outs and by id. */
export async function listFanoutPayments(
  db: Db,
  args: { fanouts: readonly Fanout[]; limit: number },
): Promise<{ id: string; settlement_id: string }[]> {
  const { fanouts, limit } = args;
  const { rows } = await sql<{ id: string; settlement_id: string }>`
    select p.id, f.id as settlement_id
    from unnest(${fanouts.map((one) => one.settlement_id)}::text[], ${fanouts.map((one) => one.after_payment)}::text[])
      with ordinality as f (id, after, place)
    cross join lateral (
      select id from payment where settlement_id = f.id and id > f.after order by id limit ${limit}
    ) p
    order by f.place, p.id limit ${limit}`.execute(db);
  return rows;
}

/** Inserts the events of payments that were paid out. Keeps events that exist. */
export async function insertSettledEvents(
  db: Db,
  args: { endpointId: string; events: readonly { paymentId: string; at: Date }[]; dueAt: Date },
): Promise<void> {
  const { endpointId, events, dueAt } = args;
  await sql`
    insert into webhook_delivery (id, endpoint_id, payment_id, type, state_version, at, due_at)
    select 'evt_' || replace(gen_random_uuid()::text, '-', ''), ${endpointId}, p.id, 'payment.settled',
      p.state_version + 1, paid.at, ${dueAt}
    from unnest(${events.map(({ paymentId }) => paymentId)}::text[], ${events.map(({ at }) => at)}::timestamptz[])
      as paid (payment_id, at)
    join payment p on p.id = paid.payment_id
    on conflict (payment_id, endpoint_id, type) do nothing`.execute(db);
}

/** Deletes fan-outs whose events are all inserted. */
export async function deleteFanouts(db: Db, args: { endpointId: string; ids: readonly string[] }): Promise<void> {
  await db
    .deleteFrom("webhook_fanout")
    .where("endpoint_id", "=", args.endpointId)
    .where(sql<boolean>`settlement_id = any(${args.ids})`)
    .execute();
}

/** Stores the progress of a fan-out. */
export async function advanceFanout(
  db: Db,
  args: { endpointId: string; settlementId: string; afterPayment: string },
): Promise<void> {
  await db
    .updateTable("webhook_fanout")
    .set({ after_payment: args.afterPayment })
    .where("endpoint_id", "=", args.endpointId)
    .where("settlement_id", "=", args.settlementId)
    .execute();
}
