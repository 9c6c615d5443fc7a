import { type Selectable, sql } from "kysely";
import { moveRows } from "../moves.ts";
import type { RefundState } from "../states.ts";
import type { Db, Mode, Tables } from "../tables.ts";
import { isQueueOfRefund } from "./payout-queue.ts";

export type RefundRow = Selectable<Tables["refund"]>;
export type NewRefund = Omit<
  RefundRow,
  "held_reason" | "due_retries" | "account_id" | "mode" | "updated_at" | "tx_hash" | "paid_at"
>;

/** Inserts a refund. Returns false and inserts nothing when its exception has a refund already. */
export async function insertRefund(db: Db, row: NewRefund): Promise<boolean> {
  const result = await db
    .insertInto("refund")
    .values({ ...row, updated_at: row.created_at })
    .onConflict((conflict) => conflict.column("exception_id").doNothing())
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** A refund of a payment. A trigger sets the other columns from the payment: who receives it, and what it draws on. */
export type NewPaymentRefund = Pick<NewRefund, "id" | "number" | "amount" | "state" | "created_at" | "due_at"> & {
  payment_id: string;
};

/** Inserts a refund of a payment and returns it. */
export async function insertPaymentRefund(db: Db, row: NewPaymentRefund): Promise<RefundRow> {
  const values = { ...row, updated_at: row.created_at };
  return db.insertInto("refund").values(values).returningAll().executeTakeFirstOrThrow();
}

/** Returns a refund that a transfer refers to, locked until the commit. Throws when it does not exist. */
export async function findRefund(db: Db, id: string): Promise<RefundRow> {
  return db.selectFrom("refund").selectAll().where("id", "=", id).forUpdate().executeTakeFirstOrThrow();
}

/** Returns a refund that has not begun, locked until the commit. Undefined when it has, or was withdrawn. */
export async function lockDue(db: Db, id: string): Promise<RefundRow | undefined> {
  return db
    .selectFrom("refund")
    .selectAll()
    .where("id", "=", id)
    .where("state", "=", "due")
    .forUpdate()
    .executeTakeFirst();
}

/** Locks the refunds of a payment that have not begun, until the commit. Returns them, the newest first. */
export async function lockUnbegunRefunds(db: Db, paymentId: string): Promise<RefundRow[]> {
  const rows = await db
    .selectFrom("refund")
    .selectAll()
    .where("payment_id", "=", paymentId)
    .where("state", "in", ["due", "held"])
    .orderBy("id")
    .forUpdate()
    .execute();
  return rows.toSorted((a, b) => b.number - a.number);
}

/**
 * Moves a refund to `paying`. Returns false and changes nothing when it has begun, was withdrawn, or has another amount than the
 * one that was signed.
 */
export async function moveToPaying(
  db: Db,
  { id, amount }: Pick<RefundRow, "id" | "amount">,
  at: Date,
): Promise<boolean> {
  const where = sql`amount = ${amount}::numeric`;
  const set = { due_at: null };
  return (await moveRows(db, "refund", { ids: [id], from: "due", to: "paying", at, set, where })).length > 0;
}

/** Makes the refunds of a payment that have not begun due, and returns them. */
export async function makeRefundsDue(
  db: Db,
  { paymentId, at }: { paymentId: string; at: Date },
): Promise<Pick<RefundRow, "merchant_id" | "asset" | "owed_asset">[]> {
  return db
    .updateTable("refund")
    .set({ due_at: at })
    .where("payment_id", "=", paymentId)
    .where("state", "=", "due")
    .returning(["merchant_id", "asset", "owed_asset"])
    .execute();
}

/** Moves refunds whose transfers are final to `paid`, with the transactions that paid them. Returns how many moved. */
export async function moveToPaid(
  db: Db,
  { paid, at }: { paid: readonly { id: string; txHash: string }[]; at: Date },
): Promise<number> {
  const ids = paid.map(({ id }) => id);
  const given = sql`unnest(${ids}::text[], ${paid.map(({ txHash }) => txHash)}::text[]) as given (id, hash)`;
  const set = { paid_at: at, tx_hash: sql<string>`given.hash` };
  return (await moveRows(db, "refund", { ids, from: "paying", to: "paid", at, set, given })).length;
}

/** Moves a refund of a payment that has not begun to `withdrawn`. The caller has locked it. */
export async function moveToWithdrawn(db: Db, { id, at }: { id: string; at: Date }): Promise<void> {
  await sql`select withdraw_refund(${id}, ${at})`.execute(db);
}

/** Moves the return of an exception that has not begun to `withdrawn`. The caller has locked it, and books the exception again. */
export async function moveReturnToWithdrawn(
  db: Db,
  { id, from, at }: { id: string; from: "due" | "held"; at: Date },
): Promise<void> {
  await moveRows(db, "refund", { ids: [id], from, to: "withdrawn", at, set: { due_at: null } });
}

/** Sets a refund's amount, and the amount it takes from the merchant's balance when that is in another asset. */
export async function setRefundAmount(
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

/** Returns what a payment's refunds return or will return, minor units of the paid asset. Withdrawn ones do not count. */
export async function sumRefunds(db: Db, paymentId: string): Promise<bigint> {
  const query = db.selectFrom("refund").where("payment_id", "=", paymentId).where("state", "<>", "withdrawn");
  const { sum } = await query.select(sql<bigint>`coalesce(sum(amount), 0)`.as("sum")).executeTakeFirstOrThrow();
  return sum;
}

/** The account, mode and merchants whose refunds a caller reaches. */
export type RefundOwner = {
  accountId: string;
  mode: Mode;
  /** The merchant that the call names; unset: every merchant of the account. */
  merchantId?: string;
  /** The merchants that the caller's key is restricted to; null: all of them. */
  onlyMerchants: readonly string[] | null;
};

/** A refund with the order identifier of its payment, and the obstacle that blocks the queue in which it waits, if any. */
export type ReportedRefund = RefundRow & { reference_id: string | null; blocked_by: string | null };

/** Selects the refunds that `owner` reaches; all of them, also those of exceptions, when it is unset. */
function selectRefunds(db: Db, owner: RefundOwner | undefined) {
  let query = db
    .selectFrom("refund as r")
    .leftJoin("payment as p", "p.id", "r.payment_id")
    .leftJoin("payout_queue as q", (join) => join.on(isQueueOfRefund("q", "r")).on("r.state", "=", "due"))
    .selectAll("r")
    .select(["p.reference_id", "q.blocked_by"]);
  if (!owner) return query;
  query = query.where("r.account_id", "=", owner.accountId).where("r.mode", "=", owner.mode);
  if (owner.merchantId !== undefined) query = query.where("r.merchant_id", "=", owner.merchantId);
  if (owner.onlyMerchants) query = query.where("r.merchant_id", "in", [...owner.onlyMerchants]);
  return query;
}

/** Returns a refund that `owner` reaches; with `lock`, locks it until the commit. */
export async function findReportedRefund(
  db: Db,
  args: { refundId: string; owner?: RefundOwner | undefined },
  { lock = false } = {},
): Promise<ReportedRefund | undefined> {
  const query = selectRefunds(db, args.owner).where("r.id", "=", args.refundId);
  return (lock ? query.forUpdate("r") : query).executeTakeFirst();
}

/** Selects the refunds of a list. An undefined member does not narrow. `after` is the last refund of the page before. */
export type RefundFilter = {
  owner?: RefundOwner | undefined;
  paymentId?: string | undefined;
  merchantIds?: readonly string[] | undefined;
  states?: readonly RefundState[] | undefined;
  from?: Date | undefined;
  before?: Date | undefined;
  after?: readonly [createdAt: string, id: string] | undefined;
};

/** Returns refunds, the newest first. */
export async function listReportedRefunds(db: Db, filter: RefundFilter, limit: number): Promise<ReportedRefund[]> {
  return pageOfRefunds(db, filter, limit).execute();
}

/** Builds the statement of `listReportedRefunds`. Exported for a test of its query plan. */
export function pageOfRefunds(db: Db, filter: RefundFilter, limit: number) {
  const { paymentId, merchantIds, states, from, before, after } = filter;
  let query = selectRefunds(db, filter.owner);
  if (paymentId !== undefined) query = query.where("r.payment_id", "=", paymentId);
  if (merchantIds) query = query.where("r.merchant_id", "in", [...merchantIds]);
  if (states) query = query.where("r.state", "in", [...states]);
  if (from) query = query.where("r.created_at", ">=", from);
  if (before) query = query.where("r.created_at", "<", before);
  if (after) query = query.where(sql<boolean>`(r.created_at, r.id) < (${after[0]}::timestamptz, ${after[1]})`);
  return query.orderBy("r.created_at", "desc").orderBy("r.id", "desc").limit(limit);
}

/**
 * A refund that has not begun, with the settlement of its payment, or with the place on the chain of the exception that it
 * refunds. `mixed`: its balance has, or may have, money that came in other assets.
 */
export type DueRefund = RefundRow & {
  mixed: boolean;
  settlement_id: string | null;
  chain: string | null;
  exception_tx_hash: string | null;
  log_index: number | null;
};

/** Returns those of these refunds that have not begun, oldest first. */
export async function listDueRefunds(db: Db, ids: readonly string[]): Promise<DueRefund[]> {
  return db
    .selectFrom("refund as r")
    .leftJoin("payment as p", "p.id", "r.payment_id")
    .leftJoin("ledger_group as g", "g.id", "r.exception_id")
    .leftJoin("settlement_destination as d", (join) =>
      join
        .onRef("d.merchant_id", "=", "r.merchant_id")
        .on("d.asset", "=", sql<string>`coalesce(r.owed_asset, r.asset)`),
    )
    .selectAll("r")
    .select(["p.settlement_id", "g.chain", "g.tx_hash as exception_tx_hash", "g.log_index"])
    .select(sql<boolean>`r.owed_asset is not null or coalesce(d.accepts_other_assets, false)`.as("mixed"))
    .where(sql<boolean>`r.id = any(${ids})`)
    .where("r.state", "=", "due")
    .orderBy("r.created_at")
    .orderBy("r.id")
    .execute();
}
