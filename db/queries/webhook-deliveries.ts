import { type Selectable, sql, type Transaction } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";
import { deducted } from "./settlement-deductions.ts";

export type DeliveryRow = Selectable<Tables["webhook_delivery"]>;
export type DeliveryState = DeliveryRow["state"];

/** A due event of a payment with everything that its payload may contain. Members that do not apply yet are null. */
export type DueEvent = {
  id: string;
  type: string;
  state_version: number;
  at: Date;
  attempts_made: number;
  payment_id: string;
  merchant_id: string;
  mode: Mode;
  reference_id: string | null;
  unit: string;
  value: bigint;
  created_at: Date;
  expires_at: Date;
  failure_code: string | null;
  cancelled_reason: string | null;
  processing_at: Date | null;
  succeeded_at: Date | null;
  tx_id: string | null;
  payer: string | null;
  asset: string | null;
  amount: bigint | null;
  /** The operator's fee: the total, its fixed part, and the rate of the rest in hundredths of a percent. */
  fee: bigint;
  fee_fixed: bigint;
  fee_basis_points: number;
  /** What the merchant receives, when that is in another asset. */
  owed_asset: string | null;
  owed_amount: bigint | null;
  settled_tx_id: string | null;
  settled_asset: string | null;
  settled_amount: bigint | null;
};

/** Returns the due events of payments of an endpoint, oldest first, without those in `without`, which are being sent already. */
export async function listDueEvents(
  db: Db,
  args: { endpointId: string; now: Date; without: readonly string[]; limit: number },
): Promise<DueEvent[]> {
  const reached = (state: string) => sql`(
    select e.at from event e where e.subject = p.id and e.to_state = ${state} order by e.id limit 1)`;
  const { rows } = await sql<DueEvent>`
    select d.id, d.type, d.state_version, d.at, d.attempts_made, p.id as payment_id,
      p.merchant_id, p.mode, p.reference_id, p.unit, p.value,
      p.created_at, p.expires_at, p.failure_code,
      p.cancelled_reason, ${reached("processing")} as processing_at,
      ${reached("succeeded")} as succeeded_at, p.tx_id, o.payer,
      coalesce(o.asset, paid.asset) as asset, coalesce(o.amount, paid.amount) as amount,
      coalesce(o.fee, 0) as fee, coalesce(o.fee_fixed, 0) as fee_fixed, coalesce(o.fee_basis_points, 0) as fee_basis_points,
      coalesce(s.tx_hash, g.tx_hash) as settled_tx_id, s.asset as settled_asset, coalesce(p.owed_amount, p.paid_amount - p.fee) - ${deducted} as settled_amount,
      o.owed_asset, o.owed_amount
    from (
      select * from webhook_delivery
      where endpoint_id = ${args.endpointId} and due_at <= ${args.now} and payment_id is not null
        and id <> all(${args.without}::text[])
      order by due_at limit ${args.limit}
    ) d
    join payment p on p.id = d.payment_id
    left join payment_option o on o.id = p.option_id
    left join lateral (select p.paid_asset as asset, p.paid_amount as amount) paid on d.type = 'payment.succeeded'
    left join settlement s on s.id = p.settlement_id and d.type = 'payment.settled'
    left join transfer t on t.settlement_id = s.id and t.purpose = 'settlement'
    left join ledger_group g on g.subject = t.id and g.kind = 'settlement_paid'
    order by d.due_at, d.state_version`.execute(db);
  return rows;
}

/** The result of a delivery attempt. `dueAt` is the time of the next attempt; null when there is none. */
export type DeliveryAttempt = {
  id: string;
  /** The count before the attempt. A delivery that was replayed or attempted meanwhile is left unchanged. */
  attemptsMade: number;
  state: DeliveryState;
  outcome: string;
  at: Date;
  dueAt: Date | null;
};

/** Stores the results of delivery attempts in one statement. */
export async function recordDeliveryAttempts(db: Db, attempts: readonly DeliveryAttempt[]): Promise<void> {
  if (attempts.length === 0) return;
  const column = <K extends keyof DeliveryAttempt>(name: K) => attempts.map((attempt) => attempt[name]);
  await sql`
    with tried as (
      select * from unnest(${column("id")}::text[], ${column("attemptsMade")}::integer[], ${column("state")}::text[],
        ${column("outcome")}::text[], ${column("at")}::timestamptz[], ${column("dueAt")}::timestamptz[])
        as t (id, attempts_made, state, outcome, at, due_at)
    ), locked as (
      select d.id from webhook_delivery d join tried t on t.id = d.id and t.attempts_made = d.attempts_made
      where d.state = 'pending' order by d.id for update of d
    )
    update webhook_delivery d
    set attempts_made = d.attempts_made + 1, state = t.state, last_outcome = t.outcome, due_at = t.due_at,
      delivered_at = case t.state when 'delivered' then t.at end
    from tried t join locked l on l.id = t.id where d.id = t.id`.execute(db);
}

/** Gives up all pending deliveries of an endpoint. */
export async function giveUpDeliveries(db: Db, endpointId: string): Promise<void> {
  await db.deleteFrom("webhook_fanout").where("endpoint_id", "=", endpointId).execute();
  await sql`
    update webhook_delivery set state = 'given_up', last_outcome = 'endpoint deleted', due_at = null
    where id in (
      select id from webhook_delivery where endpoint_id = ${endpointId} and due_at is not null order by id for update
    )`.execute(db);
}

/** Returns deliveries of an endpoint, newest first. */
export async function listDeliveryRows(
  db: Db,
  args: { endpointId: string; paymentId?: string | undefined; state?: DeliveryState | undefined; limit: number },
): Promise<DeliveryRow[]> {
  let query = db
    .selectFrom("webhook_delivery")
    .selectAll()
    .where("endpoint_id", "=", args.endpointId)
    .orderBy("at", "desc")
    .orderBy("state_version", "desc")
    .limit(args.limit);
  if (args.paymentId !== undefined) query = query.where("payment_id", "=", args.paymentId);
  if (args.state !== undefined) query = query.where("state", "=", args.state);
  return query.execute();
}

const fresh = { state: "pending" as const, attempts_made: 0, delivered_at: null };

/** Makes one delivery due now, with no attempts made. Returns false when the endpoint has no such delivery. */
export async function replayDelivery(db: Db, args: { id: string; endpointId: string; at: Date }): Promise<boolean> {
  const row = await db
    .updateTable("webhook_delivery")
    .set({ ...fresh, due_at: args.at })
    .where("id", "=", args.id)
    .where("endpoint_id", "=", args.endpointId)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Rows per statement; one day of a busy account has many more. */
const REPLAYED_PER_STATEMENT = 5_000;

/**
 * Makes finished deliveries due now, either those of a period or those that were given up, and returns how many. Runs in
 * one transaction, so that no delivery is sent, finished and selected a second time meanwhile.
 */
export async function replayDeliveries(
  db: Transaction<Tables>,
  args: { endpointId: string; at: Date; which: { since: Date; until: Date } | { state: "given_up" } },
): Promise<number> {
  let count = 0;
  for (;;) {
    let some = db
      .selectFrom("webhook_delivery")
      .select("id")
      .where("endpoint_id", "=", args.endpointId)
      .limit(REPLAYED_PER_STATEMENT);
    some =
      "state" in args.which
        ? some.where("state", "=", args.which.state)
        : some.where("state", "<>", "pending").where("at", ">=", args.which.since).where("at", "<", args.which.until);
    const { numUpdatedRows } = await db
      .updateTable("webhook_delivery")
      .set({ ...fresh, due_at: args.at })
      .where("id", "in", some)
      .executeTakeFirst();
    count += Number(numUpdatedRows);
    if (numUpdatedRows < BigInt(REPLAYED_PER_STATEMENT)) return count;
  }
}
