import { sql } from "kysely";
import { sumInTransit } from "../sum-in-transit.ts";
import type { Db, Mode } from "../tables.ts";

/** One change of a merchant's balance in the ledger, minor units of `asset`. */
export type StatementRow = {
  /** The ledger entry. */
  entry: number;
  at: Date;
  kind: "payment" | "settlement" | "refund" | "assigned";
  payment_id: string | null;
  /** Null for a line of another kind. */
  refund_id: string | null;
  reference_id: string | null;
  description: string | null;
  metadata: Record<string, string> | null;
  /** The buyer's amount and the operator's fee; of payments in this asset only. */
  gross: bigint | null;
  fee: bigint | null;
  /** The same of a payment in another asset, which is converted, in minor units of that asset. */
  paid_asset: string | null;
  paid_amount: bigint | null;
  paid_fee: bigint | null;
  /** Negative for settlements and refunds. */
  change: bigint;
  /** The receiver of a settlement or refund (CAIP-10), in the spelling of its row. */
  to: string | null;
  /** Null while a payout or refund is in transit. */
  tx_hash: string | null;
};

/** What a merchant is owed (`payable:` and its id) in one asset, over UTC days, both inclusive. */
export type StatementPeriod = { account: string; asset: string; from: string; until: string };

/** A condition on the days of a ledger group `g`, UTC, both inclusive. It fits the index by time. */
const bookedBetween = (from: string, until: string) =>
  sql`g.at >= ${from}::date::timestamp at time zone 'UTC' and g.at < (${until}::date + 1)::timestamp at time zone 'UTC'`;

/** The condition of the index by account. */
const isPayable = sql`e.account like 'payable:%'`;

/** Returns the changes of a ledger account in an asset after an entry, in the order of booking. */
export async function listStatementRows(
  db: Db,
  args: StatementPeriod & { after: number; limit: number },
): Promise<StatementRow[]> {
  return (await selectStatementRows(args).execute(db)).rows;
}

/** Builds the query of `listStatementRows`. Exported for a test of its query plan. */
export function selectStatementRows({
  account,
  asset,
  from,
  until,
  after,
  limit,
}: StatementPeriod & { after: number; limit: number }) {
  return sql<StatementRow>`
    select e.id as entry, g.at, -e.amount as change,
      case when g.kind = 'payment' then 'payment' when s.id is not null then 'settlement'
        when r.id is not null then 'refund' else 'assigned' end as kind,
      coalesce(p.id, r.payment_id) as payment_id, r.id as refund_id, coalesce(p.reference_id, rp.reference_id) as reference_id,
      coalesce(p.description, rp.description) as description, coalesce(p.metadata, rp.metadata) as metadata,
      case when p.owed_asset is null then t.amount end as gross,
      case when p.owed_asset is null then t.amount + e.amount end as fee,
      case when p.owed_asset is not null then p.paid_asset end as paid_asset,
      case when p.owed_asset is not null then p.paid_amount end as paid_amount,
      case when p.owed_asset is not null then p.fee end as paid_fee,
      coalesce(s.destination, split_part(r.asset, '/', 1) || ':' || r.receiver) as "to",
      case when s.id is not null or r.id is not null then coalesce(s.tx_hash, paid.tx_hash) else g.tx_hash end as tx_hash
    from (
      select e.id, e.group_id, e.amount from ledger_entry e
      join ledger_group g on g.id = e.group_id
      where e.account = ${account} and ${isPayable} and e.asset = ${asset} and e.id > ${after}
        and ${bookedBetween(from, until)}
      order by e.id limit ${limit}
    ) e
    join ledger_group g on g.id = e.group_id
    left join transfer t on g.kind = 'payment' and t.id = g.subject
    left join payment p on p.id = t.payment_id
    left join settlement s on g.kind in ('settlement_begun', 'settlement_changed') and s.id = g.subject
    left join refund r on g.kind in ('refund_begun', 'refund_reduced', 'refund_raised') and r.id = g.subject
    left join payment rp on rp.id = r.payment_id
    left join lateral (
      select id from transfer where purpose = 'settlement' and settlement_id = s.id
      union all select id from transfer where purpose = 'refund' and refund_id = r.id
    ) out on true
    left join ledger_group paid on paid.subject = out.id and paid.kind in ('settlement_paid', 'refund_paid')
    order by e.id`;
}

/** A ledger account in an asset with a balance or a change: its balance before a day, as the ledger signs it. */
export type StatementOpening = { account: string; asset: string; before: bigint };

/** Returns the balances before `from` of ledger accounts with a balance or a change until `until`, by account and asset. */
export async function listOpenings(
  db: Db,
  { accounts, from, until }: { accounts: readonly string[]; from: string; until: string },
): Promise<StatementOpening[]> {
  const { rows } = await sql<StatementOpening>`
    select account, asset, coalesce(sum(amount) filter (where day < ${from}::date), 0) as before from ledger_day
    where account = any(${accounts}) and day <= ${until}::date
    group by account, asset
    having coalesce(sum(amount) filter (where day < ${from}::date), 0) <> 0 or max(day) >= ${from}::date
    order by account, asset`.execute(db);
  return rows;
}

/** Whose merchants: those of an account and mode that a key reaches, also deleted ones, which may have a balance. */
export type MerchantOwner = { accountId: string; mode: Mode; onlyMerchants?: readonly string[] | null };

/** Returns ids of an account's merchants after an id, in their order. */
export async function listMerchantIds(
  db: Db,
  { accountId, mode, onlyMerchants, after, limit }: MerchantOwner & { after: string; limit: number },
): Promise<string[]> {
  let query = db
    .selectFrom("merchant")
    .select("id")
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .where("id", ">", after)
    .orderBy("id")
    .limit(limit);
  if (onlyMerchants) query = query.where("id", "in", [...onlyMerchants]);
  return (await query.execute()).map(({ id }) => id);
}

/** What a merchant is owed in an asset: without the payouts that have begun, and the sum of those that are not final. */
export type BalanceRow = { merchant_id: string; asset: string; amount: bigint; in_transit: bigint };

/** Returns what merchants are owed and have not been paid yet, by merchant and asset, after a place. */
export async function listMerchantBalances(
  db: Db,
  owner: MerchantOwner & { merchantId?: string | undefined; after: readonly [string, string]; limit: number },
): Promise<BalanceRow[]> {
  return (await selectMerchantBalances(owner).execute(db)).rows;
}

/** Builds the query of `listMerchantBalances`. Exported for a test of its query plan. */
export function selectMerchantBalances({
  accountId,
  mode,
  onlyMerchants,
  merchantId,
  after: [merchant, asset],
  limit,
}: MerchantOwner & { merchantId?: string | undefined; after: readonly [string, string]; limit: number }) {
  return sql<BalanceRow>`
    select b.merchant_id, b.asset, b.amount, b.in_transit from merchant m
    cross join lateral (
      select b.*, s.in_transit from merchant_balance b
      cross join lateral (${sumInTransit}) s
      where b.merchant_id = m.id and (b.amount > 0 or s.in_transit > 0)
        and (b.merchant_id, b.asset) > (${merchant}, ${asset}) order by b.asset
    ) b
    where m.account_id = ${accountId} and m.mode = ${mode} and m.id >= ${merchant}
      ${merchantId === undefined ? sql`` : sql`and m.id = ${merchantId}`}
      ${onlyMerchants ? sql`and m.id = any(${onlyMerchants})` : sql``}
    order by m.id, b.asset limit ${limit}`;
}
