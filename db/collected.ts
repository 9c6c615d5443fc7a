import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";

export type CollectedRow = Selectable<Tables["collected_data"]>;
type NewRow = Insertable<Tables["collected_data"]>;

/** Requesters whose data for one payment and account is kept ahead of a confirm; a further one replaces the oldest. */
const POSTED = 50;
/** Requesters whose data is kept of one attempt that proves nobody. */
const CLAIMED = 5;

/** Writes what a requester posted for an account of a payment, in place of what the same requester posted before. */
export async function upsertPosted(db: Db, row: Omit<NewRow, "attempt_id">): Promise<void> {
  const { id, key_id, sealed, created_at, delete_at, keep_until } = row;
  await db
    .insertInto("collected_data")
    .values({ ...row, attempt_id: null })
    .onConflict((conflict) =>
      conflict
        .columns(["payment_id", "account", "requester"])
        .where("attempt_id", "is", null)
        .doUpdateSet({ id, key_id, sealed, created_at, delete_at, keep_until }),
    )
    .execute();
  await sql`
    delete from collected_data where id in (
      select id from collected_data
      where payment_id = ${row.payment_id} and account = ${row.account} and attempt_id is null
      order by created_at desc, id offset ${POSTED})`.execute(db);
}

/** What a requester has posted for an account of a payment. */
export async function findPosted(
  db: Db,
  of: { paymentId: string; account: string; requester: string },
): Promise<CollectedRow | undefined> {
  return db
    .selectFrom("collected_data")
    .selectAll()
    .where("payment_id", "=", of.paymentId)
    .where("account", "=", of.account)
    .where("requester", "=", of.requester)
    .where("attempt_id", "is", null)
    .executeTakeFirst();
}

/**
 * Makes data part of an attempt, in place of what it had of the same requester. Nothing of a verified attempt is replaced;
 * to one that proves nobody a further requester's data is still added. The attempt is locked until the commit, so that
 * its verification comes before or after.
 */
export async function putOnAttempt(db: Db, row: NewRow & { attempt_id: string }): Promise<void> {
  const attempt = await db
    .selectFrom("attempt")
    .select("state")
    .where("id", "=", row.attempt_id)
    .forUpdate()
    .executeTakeFirst();
  if (!attempt || (attempt.state === "verified" && row.requester === "")) return;
  const kept = await db
    .selectFrom("collected_data")
    .select(["id", "requester"])
    .where("attempt_id", "=", row.attempt_id)
    .execute();
  const own = kept.find(({ requester }) => requester === row.requester);
  if (own ? attempt.state === "verified" : kept.length >= CLAIMED) return;
  if (own) await db.deleteFrom("collected_data").where("id", "=", own.id).execute();
  const delete_at = attempt.state === "verified" ? row.keep_until : row.delete_at;
  await db
    .insertInto("collected_data")
    .values({ ...row, delete_at })
    .execute();
}

/** Keeps the data of attempts that were verified for its whole time. */
export async function keepVerified(db: Db, attemptIds: readonly string[]): Promise<void> {
  if (attemptIds.length === 0) return;
  await db
    .updateTable("collected_data")
    .set({ delete_at: sql<Date>`keep_until` })
    .where(sql<boolean>`attempt_id = any(${attemptIds})`)
    .execute();
}

/** A requester that is no name: of data that no signature proves, and nobody's session either. */
const NOBODY = "unproven";

/**
 * Makes the data of an option's other confirms part of the attempt that the money itself has opened, and keeps it for its
 * whole time: of those that the payer's key signed the newest, of pushes each requester's.
 * @param isProved false for a confirm that only the payer's code could have proved: its data is nobody's then
 */
export async function moveToOpened(
  db: Db,
  { attempt, option }: { attempt: { id: string; isProved: boolean }; option: { id: string; payment_id: string } },
): Promise<void> {
  if (!attempt.isProved)
    await db
      .updateTable("collected_data")
      .set({ requester: NOBODY })
      .where("attempt_id", "=", attempt.id)
      .where("requester", "=", "")
      .execute();
  await sql`
    update collected_data set attempt_id = ${attempt.id} where id in (
      select distinct on (c.requester) c.id from collected_data c join attempt a on a.id = c.attempt_id
      where a.payment_id = ${option.payment_id} and a.option_id = ${option.id} and a.id <> ${attempt.id}
        and a.verification in ('key', 'push')
        and not exists (select from collected_data k where k.attempt_id = ${attempt.id} and k.requester = c.requester)
      order by c.requester, c.created_at desc limit ${CLAIMED})`.execute(db);
  await keepVerified(db, [attempt.id]);
}

/** Data of a payment with the state of the attempt it is part of, if it is part of one. */
export async function listCollected(
  db: Db,
  paymentId: string,
): Promise<(CollectedRow & { attempt_state: string | null })[]> {
  return db
    .selectFrom("collected_data as c")
    .leftJoin("attempt as a", "a.id", "c.attempt_id")
    .selectAll("c")
    .select("a.state as attempt_state")
    .where("c.payment_id", "=", paymentId)
    .orderBy("c.created_at")
    .orderBy("c.id")
    .execute();
}
