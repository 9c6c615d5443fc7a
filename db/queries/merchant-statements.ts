import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** One change of a merchant's balance in the ledger, minor units of `asset`. */
export type StatementRow = {
  at: Date;
  asset: string;
  kind: "payment" | "settlement" | "refund" | "assigned";
  payment_id: string | null;
  reference_id: string | null;
  /** The buyer's amount and the operator's fee; payments only. A converted payment is net, with a fee of 0. */
  gross: bigint | null;
  fee: bigint | null;
  /** Negative for settlements and refunds. */
  change: bigint;
  /** The receiver: a CAIP-10 account for a settlement, an address for a refund. */
  to: string | null;
  /** Null while a payout or refund is in transit. */
  tx_hash: string | null;
};

/** Returns the changes of a merchant's ledger account from one UTC day to another, both inclusive, in the order of booking. */
export async function listStatementRows(
  db: Db,
  { account, from, until }: { account: string; from: string; until: string },
): Promise<StatementRow[]> {
  const { rows } = await sql<StatementRow>`
    select g.at, e.asset, -e.amount as change,
      case when g.kind = 'payment' then 'payment' when s.id is not null then 'settlement'
        when r.id is not null then 'refund' else 'assigned' end as kind,
      coalesce(p.id, r.payment_id) as payment_id, coalesce(p.reference_id, rp.reference_id) as reference_id,
      case when g.kind = 'payment' then case when p.owed_asset is null then t.amount else -e.amount end end as gross,
      case when g.kind = 'payment' then case when p.owed_asset is null then t.amount + e.amount else 0 end end as fee,
      coalesce(s.destination, r.receiver) as "to",
      case when s.id is not null or r.id is not null then coalesce(s.tx_hash, paid.tx_hash) else g.tx_hash end as tx_hash
    from ledger_entry e
    join ledger_group g on g.id = e.group_id
    left join transfer t on g.kind = 'payment' and t.id = g.subject
    left join payment p on p.id = t.payment_id
    left join settlement s on g.kind in ('settlement_begun', 'settlement_changed') and s.id = g.subject
    left join refund r on g.kind in ('refund_begun', 'refund_reduced') and r.id = g.subject
    left join payment rp on rp.id = r.payment_id
    left join transfer out on (out.purpose = 'settlement' and out.settlement_id = s.id)
      or (out.purpose = 'refund' and out.refund_id = r.id)
    left join ledger_group paid on paid.subject = out.id and paid.kind in ('settlement_paid', 'refund_paid')
    where e.account = ${account} and ledger_day_of(g.at) between ${from}::date and ${until}::date
    order by e.id`.execute(db);
  return rows;
}
