import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Mode, Tables } from "./tables.ts";

export type PaymentRow = Selectable<Tables["payment"]>;
/** A payment with what is shown of its merchant. */
export type PaymentWithMerchant = PaymentRow & { merchant_name: string; merchant_logo_id: string | null };

/** Writes a new payment. */
export async function insertPayment(db: Db, row: Insertable<Tables["payment"]>): Promise<PaymentRow> {
  return db.insertInto("payment").values(row).returningAll().executeTakeFirstOrThrow();
}

/** A payment of a mode; with an owner given, only that merchant's of that account. */
export async function findPayment(
  db: Db,
  args: { id: string; mode: Mode; merchant?: { accountId: string; merchantId: string } | undefined },
): Promise<PaymentWithMerchant | undefined> {
  let query = db
    .selectFrom("payment as p")
    .innerJoin("merchant as m", "m.id", "p.merchant_id")
    .selectAll("p")
    .select(["m.name as merchant_name", "m.logo_id as merchant_logo_id"])
    .where("p.id", "=", args.id)
    .where("p.mode", "=", args.mode);
  if (args.merchant)
    query = query
      .where("p.account_id", "=", args.merchant.accountId)
      .where("p.merchant_id", "=", args.merchant.merchantId);
  return query.executeTakeFirst();
}

/** The transaction that has paid a settlement out; undefined until it is confirmed. */
export async function findPayout(db: Db, settlementId: string): Promise<{ txHash: string } | undefined> {
  const { rows } = await sql<{ txHash: string }>`
    select g.tx_hash as "txHash" from transfer t
    join ledger_group g on g.kind = 'settlement_paid' and g.subject = t.id
    where t.settlement_id = ${settlementId} and t.purpose = 'settlement' and g.tx_hash is not null`.execute(db);
  return rows[0];
}

/** Payments by id, for those who wait for a change. */
export async function listPayments(db: Db, ids: readonly string[]): Promise<PaymentRow[]> {
  if (ids.length === 0) return [];
  return db.selectFrom("payment").selectAll().where(sql<boolean>`id = any(${ids})`).execute();
}
