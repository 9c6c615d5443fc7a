import { sql } from "kysely";
import type { Db } from "../../db/tables.ts";

/** All recorded events of one payment, in chronological order. */
export type History = {
  /** State changes of the payment, its attempts, its transfers, its settlement and its refunds. */
  moves: {
    at: Date;
    machine: string;
    subject: string;
    from: string;
    to: string;
    detail: Record<string, unknown> | null;
  }[];
  transactions: {
    lane: string;
    nonce: number;
    replacement: number;
    hash: string;
    state: string;
    block: number | null;
    gasUsed: bigint | null;
  }[];
  settlement: {
    id: string;
    state: string;
    amount: bigint;
    asset: string;
    destination: string | null;
    txHash: string | null;
    paidAt: Date | null;
    /** The obstacle that blocks its payout queue, if there is one. */
    blockedBy: string | null;
  } | null;
  ledger: { at: Date; kind: string; account: string; asset: string; amount: bigint; txHash: string | null }[];
};

/** Returns the history of a payment, for the demo and the operator's command line. */
export async function listHistory(deps: { db: Db }, paymentId: string): Promise<History> {
  const { rows: subjects } = await sql<{ id: string }>`
    select id from payment where id = ${paymentId}
    union all select id from attempt where payment_id = ${paymentId}
    union all select id from transfer where payment_id = ${paymentId} and purpose = 'payment'
    union all select settlement_id from payment where id = ${paymentId} and settlement_id is not null
    union all select t.id from transfer t join payment p on p.settlement_id = t.settlement_id
      where p.id = ${paymentId} and t.purpose = 'settlement'
    union all select id from refund where payment_id = ${paymentId}
    union all select t.id from refund r join transfer t on t.refund_id = r.id and t.purpose = 'refund'
      where r.payment_id = ${paymentId}`.execute(deps.db);
  const ids = subjects.map((row) => row.id);
  const { rows: moves } = await sql<History["moves"][number]>`
    select at, machine, subject, from_state as "from", to_state as "to", detail from event where subject = any(${ids}) order by id`.execute(
    deps.db,
  );
  const { rows: transactions } = await sql<History["transactions"][number]>`
    select distinct t.lane_id as lane, t.nonce, t.replacement, t.hash, t.state, t.block_number as block, t.gas_used as "gasUsed"
    from transaction t join transfer f on f.lane_id = t.lane_id and f.lane_nonce = t.nonce
    where f.id = any(${ids}) order by t.lane_id, t.nonce, t.replacement`.execute(deps.db);
  const { rows: settlements } = await sql<NonNullable<History["settlement"]>>`
    select s.id, s.state, s.amount, s.asset, s.destination, coalesce(s.tx_hash, g.tx_hash) as "txHash", s.paid_at as "paidAt",
      q.blocked_by as "blockedBy"
    from settlement s join payment p on p.settlement_id = s.id
    left join payout_queue q on s.state in ('due', 'accumulating') and q.kind = 'settlement'
      and q.merchant_id = s.merchant_id and q.asset = s.asset
    left join transfer t on t.settlement_id = s.id and t.purpose = 'settlement'
    left join ledger_group g on g.kind = 'settlement_paid' and g.subject = t.id
    where p.id = ${paymentId}`.execute(deps.db);
  const { rows: ledger } = await sql<History["ledger"][number]>`
    select g.at, g.kind, e.account, e.asset, e.amount, g.tx_hash as "txHash"
    from ledger_group g join ledger_entry e on e.group_id = g.id where g.subject = any(${ids}) order by e.id`.execute(
    deps.db,
  );
  return { moves, transactions, settlement: settlements[0] ?? null, ledger };
}
