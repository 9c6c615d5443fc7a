import { type Insertable, type Selectable, sql } from "kysely";
import { listOptionsById, type OptionRow } from "./options.ts";
import { listPayments, type PaymentRow } from "./payments.ts";
import type { Db, Tables } from "./tables.ts";
import { statementTogether } from "./together.ts";

export type AttemptRow = Selectable<Tables["attempt"]>;

/** The attempt that was made with exactly this confirm, if it was made before. */
export async function findAttemptByDigest(
  db: Db,
  args: { paymentId: string; digest: Buffer },
): Promise<AttemptRow | undefined> {
  const rows = await readByPayment(db, args.paymentId);
  return rows.find((row) => row.digest.equals(args.digest));
}

/** Confirms of the same moment share a statement. */
const readByPayment = statementTogether(async (db: Db, paymentIds: readonly string[]) => {
  const rows = await db
    .selectFrom("attempt")
    .selectAll()
    .where(sql<boolean>`payment_id = any(${paymentIds})`)
    .execute();
  const byPayment = Map.groupBy(rows, (row) => row.payment_id);
  return paymentIds.map((id) => byPayment.get(id) ?? []);
});

/**
 * Writes an attempt; false when the same confirm has been written meanwhile. Those of the same moment share a statement
 * and a commit.
 */
export const insertAttempt: (db: Db, row: Insertable<Tables["attempt"]>) => Promise<boolean> = statementTogether(
  async (db, rows) => {
    const inserted = await db
      .insertInto("attempt")
      .values([...rows])
      .onConflict((conflict) => conflict.columns(["payment_id", "digest"]).doNothing())
      .returning("id")
      .execute();
    const ids = new Set(inserted.map(({ id }) => id));
    return rows.map(({ id }) => ids.has(id));
  },
);

/** Where an attempt stands. Those that are asked for at the same moment share a statement. */
export const findAttempt: (db: Db, id: string) => Promise<AttemptRow | undefined> = statementTogether(
  async (db, ids) => {
    const rows = await db.selectFrom("attempt").selectAll().where(sql<boolean>`id = any(${ids})`).execute();
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => byId.get(id));
  },
);

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

/** Locks the attempts of payments that wait, for the rest of the transaction, in the order of their ids. */
export async function lockWaitingOf(db: Db, paymentIds: readonly string[]): Promise<void> {
  await db
    .selectFrom("attempt")
    .select("id")
    .where(sql<boolean>`payment_id = any(${paymentIds})`)
    .where("state", "=", "waiting")
    .orderBy("id")
    .forUpdate()
    .execute();
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
