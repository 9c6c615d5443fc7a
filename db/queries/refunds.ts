import { type Selectable, sql } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";

export type RefundRow = Selectable<Tables["refund"]>;
export type NewRefund = Omit<RefundRow, "due_retries" | "paid_at">;

/** Inserts a refund. Returns false and inserts nothing when its exception has a refund already. */
export async function insertRefund(db: Db, row: NewRefund): Promise<boolean> {
  const result = await db
    .insertInto("refund")
    .values({ ...row, paid_at: null })
    .onConflict((conflict) => conflict.column("exception_id").doNothing())
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** A refund of a payment. A trigger sets the other columns from the payment: who receives it, and what it draws on. */
export type NewPaymentRefund = Pick<NewRefund, "id" | "number" | "amount" | "state" | "created_at" | "due_at"> & {
  payment_id: string;
};

/** Inserts a refund of a payment. */
export async function insertPaymentRefund(db: Db, row: NewPaymentRefund): Promise<void> {
  await db.insertInto("refund").values(row).execute();
}

/** Returns a refund that a transfer refers to, locked until the commit. Throws when it does not exist. */
export async function findRefund(db: Db, id: string): Promise<RefundRow> {
  return db.selectFrom("refund").selectAll().where("id", "=", id).forUpdate().executeTakeFirstOrThrow();
}

/** The mode and merchant of a refund, and the merchants that the caller's key is restricted to. */
export type RefundOwner = {
  mode: Mode;
  merchant: { accountId: string; merchantId: string };
  onlyMerchants: readonly string[] | null;
};

/** Returns a refund of a payment, locked until the commit; when `owner` is set, only a refund of that merchant. */
export async function findOwnedRefund(
  db: Db,
  args: { refundId: string; owner?: RefundOwner },
): Promise<RefundRow | undefined> {
  let query = db
    .selectFrom("refund as r")
    .innerJoin("payment as p", "p.id", "r.payment_id")
    .selectAll("r")
    .where("r.id", "=", args.refundId);
  if (args.owner)
    query = query
      .where("p.mode", "=", args.owner.mode)
      .where("p.account_id", "=", args.owner.merchant.accountId)
      .where("p.merchant_id", "=", args.owner.merchant.merchantId);
  if (args.owner?.onlyMerchants) query = query.where("p.merchant_id", "in", [...args.owner.onlyMerchants]);
  return query.forUpdate("r").executeTakeFirst();
}

/** Sets a refund's amount, and the amount it takes from the merchant's balance when that is in another asset. */
export async function reduceRefund(
  db: Db,
  args: { id: string; amount: bigint; owedAmount: bigint | null },
): Promise<void> {
  const { id, amount, owedAmount: owed_amount } = args;
  await db.updateTable("refund").set({ amount, owed_amount }).where("id", "=", id).execute();
}

/** Stores the address that a refund went to. */
export async function recordReceiver(db: Db, { id, receiver }: { id: string; receiver: string }): Promise<void> {
  await db.updateTable("refund").set({ receiver }).where("id", "=", id).execute();
}

/** Returns a payment's refunds in the order of their numbers. */
export async function listRefunds(db: Db, paymentId: string): Promise<RefundRow[]> {
  return db.selectFrom("refund").selectAll().where("payment_id", "=", paymentId).orderBy("number").execute();
}

/**
 * A refund that has not begun, with the settlement of its payment, or with the place on the chain of the exception that it
 * refunds.
 */
export type DueRefund = RefundRow & {
  settlement_id: string | null;
  chain: string | null;
  tx_hash: string | null;
  log_index: number | null;
};

/** Returns those of these refunds that have not begun, oldest first. */
export async function listDueRefunds(db: Db, ids: readonly string[]): Promise<DueRefund[]> {
  return db
    .selectFrom("refund as r")
    .leftJoin("payment as p", "p.id", "r.payment_id")
    .leftJoin("ledger_group as g", "g.id", "r.exception_id")
    .selectAll("r")
    .select(["p.settlement_id", "g.chain", "g.tx_hash", "g.log_index"])
    .where(sql<boolean>`r.id = any(${ids})`)
    .where("r.state", "=", "due")
    .orderBy("r.created_at")
    .orderBy("r.id")
    .execute();
}

/** Returns refunds that have not begun, also held ones, of all merchants or of one, oldest first. */
export async function listUnbegunRefunds(
  db: Db,
  args: { merchantId?: string | undefined; limit: number },
): Promise<RefundRow[]> {
  let query = db.selectFrom("refund").selectAll().where("state", "in", ["due", "held"]);
  if (args.merchantId !== undefined) query = query.where("merchant_id", "=", args.merchantId);
  return query.orderBy("created_at").orderBy("id").limit(args.limit).execute();
}
