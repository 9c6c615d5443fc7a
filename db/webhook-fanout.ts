import { sql } from "kysely";
import type { Db } from "./tables.ts";

/** What is left of one settlement's events for one endpoint: those of payments above `afterPayment`. */
export type Fanout = { settlementId: string; at: Date; afterPayment: string };

/** Locks an endpoint's unfinished fan-outs for the rest of the transaction, oldest first; those locked elsewhere are left out. */
export async function lockFanouts(db: Db, args: { endpointId: string; limit: number }): Promise<Fanout[]> {
  const { rows } = await sql<Fanout>`
    select settlement_id as "settlementId", at, after_payment as "afterPayment" from webhook_fanout
    where endpoint_id = ${args.endpointId} order by at, settlement_id limit ${args.limit}
    for update skip locked`.execute(db);
  return rows;
}

/** The next payments of these fan-outs, in their order and by id. */
export async function listFanoutPayments(
  db: Db,
  args: { fanouts: readonly Fanout[]; limit: number },
): Promise<{ id: string; settlementId: string }[]> {
  const { fanouts, limit } = args;
  const { rows } = await sql<{ id: string; settlementId: string }>`
    select p.id, f.id as "settlementId"
    from unnest(${fanouts.map((one) => one.settlementId)}::text[], ${fanouts.map((one) => one.afterPayment)}::text[])
      with ordinality as f (id, after, place)
    cross join lateral (
      select id from payment where settlement_id = f.id and id > f.after order by id limit ${limit}
    ) p
    order by f.place, p.id limit ${limit}`.execute(db);
  return rows;
}

/** Writes the events of payments that were paid out; one that is there already stays as it is. */
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

/** Ends fan-outs whose events are all written. */
export async function deleteFanouts(db: Db, args: { endpointId: string; ids: readonly string[] }): Promise<void> {
  await db
    .deleteFrom("webhook_fanout")
    .where("endpoint_id", "=", args.endpointId)
    .where(sql<boolean>`settlement_id = any(${args.ids})`)
    .execute();
}

/** Notes how far a fan-out has come. */
export async function moveFanout(
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
