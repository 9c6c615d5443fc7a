import { type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";
import type { AttemptRow } from "./attempts.ts";
import type { PaymentRow } from "./payments.ts";
import type { SettlementRow } from "./settlements.ts";

import type { TransferRow } from "./transfers.ts";
import type { DeliveryState } from "./webhook-deliveries.ts";

type EventRow = Selectable<Tables["event"]>;

/** What a report says of a payment. What merchants write about their buyers (description, metadata) is not part of it. */
const reportedColumns = [
  "id",
  "state",
  "mode",
  "account_id",
  "merchant_id",
  "reference_id",
  "unit",
  "value",
  "failure_code",
  "cancelled_reason",
  "tx_id",
  "paid_asset",
  "paid_amount",
  "fee",
  "created_at",
  "expires_at",
] as const;

/** A payment with the option that pays it, when it was first refunded, and the hold of its merchant. */
export type ReportedPayment = Pick<PaymentRow, (typeof reportedColumns)[number]> & {
  refunded_at: Date | null;
  payer: string | null;
  option_asset: string | null;
  option_amount: bigint | null;
  /** Since when payouts to the merchant are held. */
  payouts_held_at: Date | null;
};

/** Returns a payment of either mode, for a report. */
export async function findReportedPayment(db: Db, id: string): Promise<ReportedPayment | undefined> {
  return db
    .selectFrom("payment as p")
    .innerJoin("merchant as m", "m.id", "p.merchant_id")
    .leftJoin("payment_option as o", "o.id", "p.option_id")
    .select(reportedColumns.map((column) => `p.${column}` as const))
    .select([
      sql<Date | null>`(select min(created_at) from refund r where r.payment_id = p.id and r.state <> 'withdrawn')`.as(
        "refunded_at",
      ),
      "o.account as payer",
      "o.asset as option_asset",
      "o.amount as option_amount",
      "m.payouts_held_at",
    ])
    .where("p.id", "=", id)
    .executeTakeFirst();
}

/** Returns the attempts of a payment in the order of creation. */
export async function listReportedAttempts(
  db: Db,
  paymentId: string,
): Promise<Pick<AttemptRow, "id" | "state" | "refusal" | "created_at" | "due_at">[]> {
  return db
    .selectFrom("attempt")
    .select(["id", "state", "refusal", "created_at", "due_at"])
    .where("payment_id", "=", paymentId)
    .orderBy("created_at")
    .execute();
}

/** A transfer without its signatures. */
export type ReportedTransfer = Pick<
  TransferRow,
  | "id"
  | "purpose"
  | "state"
  | "amount"
  | "asset"
  | "payer"
  | "receiver"
  | "lane_id"
  | "lane_nonce"
  | "retries"
  | "last_error"
  | "hold_until"
  | "due_at"
>;

/** Returns the transfers of a payment, of its settlement and of its refunds, in the order of creation. */
export async function listReportedTransfers(db: Db, paymentId: string): Promise<ReportedTransfer[]> {
  const { rows } = await sql<ReportedTransfer>`
    select t.id, t.purpose, t.state, t.amount, t.asset, t.payer, t.receiver, t.lane_id, t.lane_nonce, t.retries,
      t.last_error, t.hold_until, t.due_at
    from transfer t where t.purpose = 'payment' and t.payment_id = ${paymentId}
      or t.purpose = 'settlement' and t.settlement_id = (select settlement_id from payment where id = ${paymentId})
      or t.purpose = 'refund' and t.refund_id = any(select id from refund where payment_id = ${paymentId})
    order by t.created_at`.execute(db);
  return rows;
}

/** The delivery to one endpoint of an event of a payment or of its refund. */
export type ReportedDelivery = {
  event_id: string;
  endpoint_id: string;
  type: string;
  state: DeliveryState;
  attempts_made: number;
  last_outcome: string | null;
  due_at: Date | null;
};

/** Returns the webhook deliveries of a payment and of its refunds in the order of its events. */
export async function listReportedDeliveries(db: Db, paymentId: string): Promise<ReportedDelivery[]> {
  return db
    .selectFrom("webhook_event as v")
    .innerJoin("webhook_delivery as d", "d.event_id", "v.id")
    .select(["d.event_id", "d.endpoint_id", "v.type", "d.state", "d.attempts_made", "d.last_outcome", "d.due_at"])
    .where(
      sql<boolean>`(v.payment_id = ${paymentId}
        or v.refund_id = any(array(select id from refund where payment_id = ${paymentId})))`,
    )
    .orderBy("v.sequence")
    .orderBy("d.endpoint_id")
    .execute();
}

/** Returns the ids of a payment and of its attempts, transfers, settlement and refunds. */
export async function listSubjects(db: Db, paymentId: string): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from payment where id = ${paymentId}
    union all select id from attempt where payment_id = ${paymentId}
    union all select id from transfer where payment_id = ${paymentId} and purpose = 'payment'
    union all select settlement_id from payment where id = ${paymentId} and settlement_id is not null
    union all select t.id from transfer t join payment p on p.settlement_id = t.settlement_id
      where p.id = ${paymentId} and t.purpose = 'settlement'
    union all select id from refund where payment_id = ${paymentId}
    union all select t.id from refund r join transfer t on t.refund_id = r.id and t.purpose = 'refund'
      where r.payment_id = ${paymentId}`.execute(db);
  return rows.map(({ id }) => id);
}

/** Returns the state changes of these subjects in chronological order. */
export async function listEventsOf(
  db: Db,
  ids: readonly string[],
): Promise<Pick<EventRow, "at" | "machine" | "subject" | "from_state" | "to_state" | "detail">[]> {
  return db
    .selectFrom("event")
    .select(["at", "machine", "subject", "from_state", "to_state", "detail"])
    .where(sql<boolean>`subject = any(${ids})`)
    .orderBy("id")
    .execute();
}

/** Returns the transactions that transfers are assigned to, with their replacements. */
export async function listTransactionsOf(
  db: Db,
  transferIds: readonly string[],
): Promise<
  Pick<
    Selectable<Tables["transaction"]>,
    "lane_id" | "nonce" | "replacement" | "hash" | "state" | "created_at" | "block_number" | "gas_used" | "fee"
  >[]
> {
  return db
    .selectFrom("transaction as t")
    .innerJoin("transfer as f", (join) =>
      join.onRef("f.lane_id", "=", "t.lane_id").onRef("f.lane_nonce", "=", "t.nonce"),
    )
    .select(["t.lane_id", "t.nonce", "t.replacement", "t.hash", "t.state", "t.created_at"])
    .select(["t.block_number", "t.gas_used", "t.fee"])
    .distinct()
    .where(sql<boolean>`f.id = any(${transferIds})`)
    .orderBy("t.lane_id")
    .orderBy("t.nonce")
    .orderBy("t.replacement")
    .execute();
}

/** A settlement with the transaction of its payout, and the obstacle that blocks its payout queue. */
export type ReportedSettlement = Pick<
  SettlementRow,
  "id" | "state" | "amount" | "asset" | "destination" | "paid_at"
> & {
  tx_hash: string | null;
  blocked_by: string | null;
};

/** Returns the settlement of a payment; undefined before the payment has one. */
export async function findReportedSettlement(db: Db, paymentId: string): Promise<ReportedSettlement | undefined> {
  const { rows } = await sql<ReportedSettlement>`
    select s.id, s.state, s.amount, s.asset, s.destination, coalesce(s.tx_hash, g.tx_hash) as tx_hash, s.paid_at,
      q.blocked_by
    from settlement s join payment p on p.settlement_id = s.id
    left join payout_queue q on s.state in ('due', 'accumulating') and q.kind = 'settlement'
      and q.merchant_id = s.merchant_id and q.asset = s.asset
    left join transfer t on t.settlement_id = s.id and t.purpose = 'settlement'
    left join ledger_group g on g.kind = 'settlement_paid' and g.subject = t.id
    where p.id = ${paymentId}`.execute(db);
  return rows[0];
}

/** Returns the ledger entries of these subjects in the order of booking. */
export async function listEntriesOf(
  db: Db,
  ids: readonly string[],
): Promise<{ at: Date; kind: string; account: string; asset: string; amount: bigint; tx_hash: string | null }[]> {
  return db
    .selectFrom("ledger_group as g")
    .innerJoin("ledger_entry as e", "e.group_id", "g.id")
    .select(["g.at", "g.kind", "e.account", "e.asset", "e.amount", "g.tx_hash"])
    .where(sql<boolean>`g.subject = any(${ids})`)
    .orderBy("e.id")
    .execute();
}
