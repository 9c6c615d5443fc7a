import { type Insertable, type Selectable, sql } from "kysely";
import { batchStatements } from "../batch-calls.ts";
import type { Db, Mode, Tables } from "../tables.ts";
import { deducted } from "./settlement-deductions.ts";

export type PaymentRow = Selectable<Tables["payment"]>;
/** A payment with the public details of its merchant. */
export type PaymentWithMerchant = PaymentRow & { merchant_name: string; merchant_logo_id: string | null };

/** Inserts a payment. */
export async function insertPayment(db: Db, row: Insertable<Tables["payment"]>): Promise<PaymentRow> {
  return db.insertInto("payment").values(row).returningAll().executeTakeFirstOrThrow();
}

/** Returns a payment of a mode; when `merchant` is set, only a payment of that merchant and account. */
export async function findPayment(
  db: Db,
  args: { id: string; mode: Mode; merchant?: { accountId: string; merchantId: string } | undefined },
): Promise<PaymentWithMerchant | undefined> {
  const row = await readWithMerchant(db, args.id);
  if (row?.mode !== args.mode) return undefined;
  const { merchant } = args;
  const isTheirs =
    merchant === undefined || (row.account_id === merchant.accountId && row.merchant_id === merchant.merchantId);
  return isTheirs ? row : undefined;
}

/** Returns a payment of either mode by its id. */
export async function findPaymentOfAnyMode(db: Db, id: string): Promise<PaymentWithMerchant | undefined> {
  return readWithMerchant(db, id);
}

/** Reads a payment. Concurrent calls share a statement, because every poll and every confirm reads a payment. */
const readWithMerchant = batchStatements(async (db: Db, ids: readonly string[]) => {
  const rows: PaymentWithMerchant[] = await db
    .selectFrom("payment as p")
    .innerJoin("merchant as m", "m.id", "p.merchant_id")
    .selectAll("p")
    .select(["m.name as merchant_name", "m.logo_id as merchant_logo_id"])
    .where(sql<boolean>`p.id = any(${ids})`)
    .execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id));
});

/**
 * Returns the transaction that paid out a payment's settlement, and the amount that earlier refunds deducted from the
 * payment. Undefined until the payout is confirmed.
 */
export async function findPayout(db: Db, paymentId: string): Promise<{ txHash: string; deducted: bigint } | undefined> {
  const { rows } = await sql<{ txHash: string; deducted: bigint }>`
    select coalesce(s.tx_hash, g.tx_hash) as "txHash", ${deducted} as deducted from payment p
    join settlement s on s.id = p.settlement_id
    left join transfer t on t.settlement_id = s.id and t.purpose = 'settlement'
    left join ledger_group g on g.kind = 'settlement_paid' and g.subject = t.id
    where p.id = ${paymentId} and coalesce(s.tx_hash, g.tx_hash) is not null`.execute(db);
  return rows[0];
}

/** Locks payments until the commit, in the order of their ids. */
export async function lockPayments(db: Db, ids: readonly string[]): Promise<void> {
  await db.selectFrom("payment").select("id").where(sql<boolean>`id = any(${ids})`).orderBy("id").forUpdate().execute();
}

/** Returns payments by id. */
export async function listPayments(db: Db, ids: readonly string[]): Promise<PaymentRow[]> {
  if (ids.length === 0) return [];
  return db.selectFrom("payment").selectAll().where(sql<boolean>`id = any(${ids})`).execute();
}
