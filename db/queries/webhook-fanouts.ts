import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** The events of one settlement that are still to be written: those of payments with an id above `after_payment`. */
export type Fanout = { settlement_id: string; at: Date; after_payment: string };

/** Locks unfinished fan-outs until the commit and returns them, oldest first. Skips those that are locked elsewhere. */
export async function lockFanouts(db: Db, limit: number): Promise<Fanout[]> {
  const { rows } = await sql<Fanout>`
    select settlement_id, at, after_payment from webhook_fanout
    order by at, settlement_id limit ${limit} for update skip locked`.execute(db);
  return rows;
}

/** Returns the next payments of these fan-outs, at most `limit` of each, by id. */
export async function listFanoutPayments(
  db: Db,
  args: { fanouts: readonly Fanout[]; limit: number },
): Promise<{ id: string; settlement_id: string }[]> {
  const { fanouts, limit } = args;
  const { rows } = await sql<{ id: string; settlement_id: string }>`
    select p.id, f.id as settlement_id
    from unnest(${fanouts.map((one) => one.settlement_id)}::text[], ${fanouts.map((one) => one.after_payment)}::text[])
      as f (id, after)
    cross join lateral (
      select id from payment where settlement_id = f.id and id > f.after order by id limit ${limit}
    ) p
    order by p.id`.execute(db);
  return rows;
}

/** Inserts the events of payments that were paid out. Keeps events that exist. */
export async function insertSettledEvents(db: Db, events: readonly { paymentId: string; at: Date }[]): Promise<void> {
  await sql`
    insert into webhook_event (account_id, mode, merchant_id, type, payment_id, state_version, at)
    select p.account_id, p.mode, p.merchant_id, 'payment.settled', p.id, p.state_version + 1, paid.at
    from unnest(${events.map(({ paymentId }) => paymentId)}::text[], ${events.map(({ at }) => at)}::timestamptz[])
      as paid (payment_id, at)
    join payment p on p.id = paid.payment_id
    on conflict (payment_id, type) where payment_id is not null do nothing`.execute(db);
}

/** Deletes fan-outs whose events are all inserted. */
export async function deleteFanouts(db: Db, settlementIds: readonly string[]): Promise<void> {
  await db.deleteFrom("webhook_fanout").where(sql<boolean>`settlement_id = any(${settlementIds})`).execute();
}

/** Stores the progress of locked fan-outs. */
export async function advanceFanouts(
  db: Db,
  progress: readonly { settlementId: string; afterPayment: string }[],
): Promise<void> {
  if (progress.length === 0) return;
  await sql`
    update webhook_fanout f set after_payment = p.after
    from unnest(${progress.map(({ settlementId }) => settlementId)}::text[],
      ${progress.map(({ afterPayment }) => afterPayment)}::text[]) as p (id, after)
    where f.settlement_id = p.id`.execute(db);
}
