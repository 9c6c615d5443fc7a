import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** A movement into the treasury that paid a payment, as the watcher observed it. */
export type DepositRow = {
  settlement_id: string | null;
  payment_id: string;
  merchant_id: string;
  asset: string;
  tx_hash: string;
  log_index: number;
  /** The signed bytes of the buyer's transaction, on Solana; null for one that we did not send. */
  signed: Buffer | null;
};

const columns = sql`p.settlement_id, p.id as payment_id, p.merchant_id, t.asset, o.tx_hash, o.log_index, s.bytes as signed`;
// A buyer's transaction on Solana expires with its blockhash, which no other transaction of ours has.
const joins = sql`join transfer t on t.payment_id = p.id and t.purpose = 'payment'
  join observation o on o.transfer_id = t.id and not o.orphaned
  left join transaction s on s.chain = o.chain and s.hash = o.tx_hash and s.last_valid_height is not null`;

/** Returns the deposits of payments. */
export async function listPaymentDeposits(db: Db, paymentIds: readonly string[]): Promise<DepositRow[]> {
  if (paymentIds.length === 0) return [];
  const { rows } = await sql<DepositRow>`
    select ${columns} from payment p ${joins} where p.id = any(${paymentIds}) order by p.id`.execute(db);
  return rows;
}

/** The last row of a page; the next page begins after it. */
export type DepositPage = { limit: number; after?: Pick<DepositRow, "settlement_id" | "payment_id"> | undefined };

/** Returns the deposits of the payments that settlements pay out, in pages. */
export async function listSettlementDeposits(
  db: Db,
  { settlementIds, limit, after }: DepositPage & { settlementIds: readonly string[] },
): Promise<DepositRow[]> {
  if (settlementIds.length === 0) return [];
  const { rows } = await sql<DepositRow>`
    select ${columns} from payment p ${joins}
    where p.settlement_id = any(${settlementIds})
      and (p.settlement_id, p.id) > (${after?.settlement_id ?? ""}, ${after?.payment_id ?? ""})
    order by p.settlement_id, p.id limit ${limit}`.execute(db);
  return rows;
}

/** Returns the merchant's settlements that are not paid yet. */
export async function listUnpaidSettlements(db: Db, merchantId: string): Promise<string[]> {
  const rows = await db
    .selectFrom("settlement")
    .select("id")
    .where("merchant_id", "=", merchantId)
    .where("state", "in", ["due", "accumulating", "paying"])
    .execute();
  return rows.map(({ id }) => id);
}

/** An exception that an operator has assigned to a payment, and the ledger group that did so. */
type AssignedDepositRow = DepositRow & { resolution_id: number };

/**
 * Returns the exceptions that operators have assigned to payments, of one merchant or of all, in pages by `resolution_id`:
 * money that came late, twice or in another amount. Days of dust are left out, because they name no movement.
 */
export async function listAssignedDeposits(
  db: Db,
  { merchantId, limit, after }: { merchantId?: string | undefined; limit: number; after: number },
): Promise<AssignedDepositRow[]> {
  const { rows } = await sql<AssignedDepositRow>`
    select r.id as resolution_id, null as settlement_id, p.id as payment_id, p.merchant_id, e.asset, g.tx_hash, g.log_index,
      null as signed
    from ledger_group r
    join payment p on p.id = substr(r.note, length('for ') + 1)
    join ledger_entry owed on owed.group_id = r.id and owed.account = 'payable:' || p.merchant_id
    join ledger_group g on g.id = r.subject::bigint and g.tx_hash is not null and g.log_index is not null
    join ledger_entry e on e.group_id = g.id and e.account = 'exceptions' and e.amount < 0
    where r.kind = 'exception_resolved' and r.id > ${after}
      ${merchantId === undefined ? sql`` : sql`and p.merchant_id = ${merchantId}`}
    order by r.id limit ${limit}`.execute(db);
  return rows;
}

/** Returns the deposits of all payments into the treasury, in pages by payment. */
export async function listAllDeposits(
  db: Db,
  { limit, after }: { limit: number; after: string },
): Promise<DepositRow[]> {
  const { rows } = await sql<DepositRow>`
    select ${columns} from payment p ${joins}
    where p.state = 'succeeded' and not p.direct and p.id > ${after} order by p.id limit ${limit}`.execute(db);
  return rows;
}
