import type { Insertable, Selectable } from "kysely";
import { recordBirths } from "./moves.ts";
import type { OptionRow } from "./options.ts";
import type { PaymentRow } from "./payments.ts";
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
  if (inserted)
    await recordBirths(
      db,
      "attempt",
      [{ id: row.id, state: row.state, detail: { payment: row.payment_id } }],
      row.created_at as Date,
    );
  return inserted !== undefined;
}

/** Where an attempt stands. */
export async function findAttempt(db: Db, id: string): Promise<AttemptRow | undefined> {
  return db.selectFrom("attempt").selectAll().where("id", "=", id).executeTakeFirst();
}

/** Everything that judging an attempt needs. */
export async function findAttemptWhole(
  db: Db,
  id: string,
): Promise<{ attempt: AttemptRow; option: OptionRow; payment: PaymentRow } | undefined> {
  const attempt = await findAttempt(db, id);
  if (!attempt) return undefined;
  const [option, payment] = await Promise.all([
    db.selectFrom("payment_option").selectAll().where("id", "=", attempt.option_id).executeTakeFirstOrThrow(),
    db.selectFrom("payment").selectAll().where("id", "=", attempt.payment_id).executeTakeFirstOrThrow(),
  ]);
  return { attempt, option, payment };
}
