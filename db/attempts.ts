import { type Insertable, type Selectable, sql } from "kysely";
import { listOptionsById, type OptionRow } from "./options.ts";
import { listPayments, type PaymentRow } from "./payments.ts";
import type { Db, Tables } from "./tables.ts";

export type AttemptRow = Selectable<Tables["attempt"]>;

/** The attempt that was made with exactly this confirm, if it was made before. */
export async function findAttemptByDigest(
  db: Db,
  args: { paymentId: string; digest: Buffer },
): Promise<AttemptRow | undefined> {
  return db
    .selectFrom("attempt")
    .selectAll()
    .where("payment_id", "=", args.paymentId)
    .where("digest", "=", args.digest)
    .executeTakeFirst();
}

/** Writes an attempt; false when the same confirm has been written meanwhile. */
export async function insertAttempt(db: Db, row: Insertable<Tables["attempt"]>): Promise<boolean> {
  const inserted = await db
    .insertInto("attempt")
    .values(row)
    .onConflict((conflict) => conflict.columns(["payment_id", "digest"]).doNothing())
    .returning("id")
    .executeTakeFirst();
  return inserted !== undefined;
}

/** Where an attempt stands. */
export async function findAttempt(db: Db, id: string): Promise<AttemptRow | undefined> {
  return db.selectFrom("attempt").selectAll().where("id", "=", id).executeTakeFirst();
}

/** True when a payment's verified attempt was opened by the money itself, and by no confirm. */
export async function isOpenedByChain(db: Db, paymentId: string): Promise<boolean> {
  const row = await db
    .selectFrom("attempt")
    .select("id")
    .where("payment_id", "=", paymentId)
    .where("state", "=", "verified")
    .where(sql<boolean>`results = '[]'::jsonb`)
    .executeTakeFirst();
  return row !== undefined;
}

/** An attempt with everything that judging it needs. */
export type WholeAttempt = { attempt: AttemptRow; option: OptionRow; payment: PaymentRow };

/** Attempts that wait for a verdict, whole; in no particular order. */
export async function listWaitingAttempts(db: Db, ids: readonly string[]): Promise<WholeAttempt[]> {
  const attempts = await db
    .selectFrom("attempt")
    .selectAll()
    .where(sql<boolean>`id = any(${ids})`)
    .where("state", "=", "waiting")
    .execute();
  if (attempts.length === 0) return [];
  const [options, payments] = await Promise.all([
    listOptionsById(
      db,
      attempts.map((attempt) => attempt.option_id),
    ),
    listPayments(
      db,
      attempts.map((attempt) => attempt.payment_id),
    ),
  ]);
  const optionOf = new Map(options.map((option) => [option.id, option]));
  const paymentOf = new Map(payments.map((payment) => [payment.id, payment]));
  return attempts.map((attempt) => {
    const option = optionOf.get(attempt.option_id);
    const payment = paymentOf.get(attempt.payment_id);
    if (!option || !payment) throw new Error(`attempt ${attempt.id} has lost its option or its payment`);
    return { attempt, option, payment };
  });
}

/** Locks those of these attempts that still wait, for the rest of the transaction. */
export async function lockWaiting(db: Db, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom("attempt")
    .select("id")
    .where(sql<boolean>`id = any(${ids})`)
    .where("state", "=", "waiting")
    .orderBy("id")
    .forUpdate()
    .execute();
  return rows.map((row) => row.id);
}
