import { type Selectable, sql } from "kysely";
import type { Db, Mode, Tables } from "./tables.ts";

export type RefundRow = Selectable<Tables["refund"]>;
export type NewRefund = Omit<RefundRow, "due_try" | "paid_at">;

/** Writes a refund. False, and nothing written, when its exception is being sent back already. */
export async function insertRefund(db: Db, row: NewRefund): Promise<boolean> {
  const result = await db
    .insertInto("refund")
    .values({ ...row, paid_at: null })
    .onConflict((conflict) => conflict.column("exception_id").doNothing())
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** A refund that must be there, because a transfer names it; locked until the commit. */
export async function findRefund(db: Db, id: string): Promise<RefundRow> {
  return db.selectFrom("refund").selectAll().where("id", "=", id).forUpdate().executeTakeFirstOrThrow();
}

/** Returns a refund of a payment, locked until the commit; with an owner given, only one of that merchant's. */
export async function findOwnedRefund(
  db: Db,
  args: { refundId: string; owner?: { mode: Mode; merchant: { accountId: string; merchantId: string } } },
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
  return query.forUpdate("r").executeTakeFirst();
}

/** Sets what a refund comes to, and what it takes of its merchant's balance where that is in another asset. */
export async function lessenRefund(
  db: Db,
  args: { id: string; amount: bigint; owedAmount: bigint | null },
): Promise<void> {
  const { id, amount, owedAmount: owed_amount } = args;
  await db.updateTable("refund").set({ amount, owed_amount }).where("id", "=", id).execute();
}

/** Notes the address that a refund went to. */
export async function noteReceiver(db: Db, { id, receiver }: { id: string; receiver: string }): Promise<void> {
  await db.updateTable("refund").set({ receiver }).where("id", "=", id).execute();
}

/** A payment's refunds, the first one first. */
export async function listRefunds(db: Db, paymentId: string): Promise<RefundRow[]> {
  return db.selectFrom("refund").selectAll().where("payment_id", "=", paymentId).orderBy("number").execute();
}

/**
 * A refund that still has to be begun, with the settlement that pays its payment out, and the place on chain of money
 * that belonged to nobody.
 */
export type DueRefund = RefundRow & {
  settlement_id: string | null;
  chain: string | null;
  tx_hash: string | null;
  log_index: number | null;
};

/** Those of these refunds that still have to be begun, oldest first. */
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
