import { type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";
import type { ReportedRefund } from "./refunds.ts";
import { deducted } from "./settlement-deductions.ts";

// The objects that webhook events are about, with everything that the payloads of their events may contain.

/** What the payloads of a payment's events may contain. Members that do not apply yet are null. */
export type EventPayment = {
  id: string;
  reference_id: string | null;
  description: string | null;
  metadata: Record<string, string> | null;
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
  paid_asset: string | null;
  paid_amount: bigint | null;
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

/** Returns what the payloads of these payments' events may contain. */
export async function listEventPayments(db: Db, ids: readonly string[]): Promise<EventPayment[]> {
  if (ids.length === 0) return [];
  const reached = (state: string) => sql`(
    select e.at from event e where e.subject = p.id and e.to_state = ${state} order by e.id limit 1)`;
  const { rows } = await sql<EventPayment>`
    select p.id, p.reference_id, p.description, p.metadata, p.unit, p.value, p.created_at, p.expires_at, p.failure_code, p.cancelled_reason,
      ${reached("processing")} as processing_at, ${reached("succeeded")} as succeeded_at, p.tx_id, o.payer, o.asset,
      o.amount, p.paid_asset, p.paid_amount, coalesce(o.fee, 0) as fee, coalesce(o.fee_fixed, 0) as fee_fixed,
      coalesce(o.fee_basis_points, 0) as fee_basis_points, o.owed_asset, o.owed_amount,
      coalesce(s.tx_hash, g.tx_hash) as settled_tx_id, s.asset as settled_asset,
      coalesce(p.owed_amount, p.paid_amount - p.fee) - ${deducted} as settled_amount
    from payment p
    left join payment_option o on o.id = p.option_id
    left join settlement s on s.id = p.settlement_id and s.state = 'paid'
    left join transfer t on t.settlement_id = s.id and t.purpose = 'settlement'
    left join ledger_group g on g.subject = t.id and g.kind = 'settlement_paid'
    where p.id = any(${ids})`.execute(db);
  return rows;
}

type Change = Selectable<Tables["destination_change"]>;
/** What the payloads of a destination change's events may contain. */
export type EventChange = Omit<Change, "state" | "reported_at">;

/** Returns what the payloads of these changes' events may contain. */
export async function listEventChanges(db: Db, ids: readonly string[]): Promise<EventChange[]> {
  if (ids.length === 0) return [];
  return db.selectFrom("destination_change").selectAll().where(sql<boolean>`id = any(${ids})`).execute();
}

/** What the payloads of an approval key's events may contain. */
export type EventApprovalKey = Omit<Selectable<Tables["approval_key"]>, "reported_at">;

/** Returns what the payloads of these approval keys' events may contain. */
export async function listEventApprovalKeys(
  db: Db,
  keys: readonly { merchantId: string; publicKey: string }[],
): Promise<EventApprovalKey[]> {
  if (keys.length === 0) return [];
  const { rows } = await sql<EventApprovalKey>`
    select k.* from unnest(${keys.map(({ merchantId }) => merchantId)}::text[],
      ${keys.map(({ publicKey }) => publicKey)}::text[]) as asked (merchant_id, public_key)
    join approval_key k on k.merchant_id = asked.merchant_id and k.public_key = asked.public_key`.execute(db);
  return rows;
}

/** What the payloads of a refund's events may contain. */
export type EventRefund = Omit<ReportedRefund, "blocked_by">;

/** Returns what the payloads of these refunds' events may contain. */
export async function listEventRefunds(db: Db, ids: readonly string[]): Promise<EventRefund[]> {
  if (ids.length === 0) return [];
  return db
    .selectFrom("refund as r")
    .leftJoin("payment as p", "p.id", "r.payment_id")
    .selectAll("r")
    .select("p.reference_id")
    .where(sql<boolean>`r.id = any(${ids})`)
    .execute();
}
