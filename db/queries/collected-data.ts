import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";

export type CollectedRow = Selectable<Tables["collected_data"]>;
type NewRow = Insertable<Tables["collected_data"]>;

/**
 * Of the requesters who post data for one payment and account before a confirm, so many of the earliest and so many of the
 * latest are kept, and the payment's first requester. Anyone with the link can post under any number of names, so neither
 * earlier nor later posts alone can remove the buyer's.
 */
const EARLIEST = 25;
const LATEST = 25;
/** The maximum number of requesters whose data is kept for one attempt that proves no identity. */
const CLAIMED = 5;

/**
 * Stores the data that a requester posted for an account of a payment. Replaces the same requester's earlier data, which keeps
 * its place in the order of posts and its retention.
 */
export async function upsertPostedData(db: Db, row: Omit<NewRow, "attempt_id">): Promise<void> {
  const { key_id, ciphertext } = row;
  await db
    .insertInto("collected_data")
    .values({ ...row, attempt_id: null })
    .onConflict((conflict) =>
      conflict
        .columns(["payment_id", "account", "requester"])
        .where("attempt_id", "is", null)
        .doUpdateSet({ key_id, ciphertext }),
    )
    .execute();
  await sql`
    delete from collected_data where id in (
      select id from (
        select id, requester, row_number() over (order by created_at, id) as place, count(*) over () as posts
        from collected_data
        where payment_id = ${row.payment_id} and account = ${row.account} and attempt_id is null
      ) posted
      where place > ${EARLIEST} and place <= posts - ${LATEST}
        and requester is distinct from (select requester from payment where id = ${row.payment_id}))`.execute(db);
}

/** Returns the data that a requester has posted for an account of a payment. */
export async function findPostedData(
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
 * Attaches data to an attempt and replaces the same requester's earlier data there. Never replaces data of a verified
 * attempt; an attempt that proves no identity still accepts data of another requester. Locks the attempt until the commit,
 * so that its verification happens entirely before or after this.
 */
export async function attachToAttempt(db: Db, row: NewRow & { attempt_id: string }): Promise<void> {
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

/** Extends the retention of verified attempts' data to `keep_until`. */
export async function keepVerified(db: Db, attemptIds: readonly string[]): Promise<void> {
  if (attemptIds.length === 0) return;
  await db
    .updateTable("collected_data")
    .set({ delete_at: sql<Date>`keep_until` })
    .where(sql<boolean>`attempt_id = any(${attemptIds})`)
    .execute();
}

/** The requester of data that neither a signature nor a session proves. No real requester has this name. */
const UNPROVEN = "unproven";

/**
 * Attaches the data of an option's other confirms to the attempt that an unsolicited payment opened, and extends its
 * retention. Takes the newest data that the payer's key signed, and of pushes the newest data of each requester.
 * @param attempt.isProved false for a confirm that only the payer's contract could have proved; its data then loses its
 * requester
 */
export async function attachToOpenedAttempt(
  db: Db,
  { attempt, option }: { attempt: { id: string; isProved: boolean }; option: { id: string; payment_id: string } },
): Promise<void> {
  if (!attempt.isProved)
    await db
      .updateTable("collected_data")
      .set({ requester: UNPROVEN })
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

/** Returns a payment's data, each with the state of its attempt (null for data that belongs to no attempt). */
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

/** A payment, or a payer's account (CAIP-10) in all payments. */
export type CollectedOf = { paymentId: string } | { account: string };

/** Deletes all data of a payment or an account. Returns the payment of each deleted row. */
export async function deleteCollectedOf(db: Db, of: CollectedOf): Promise<string[]> {
  const deletion = db.deleteFrom("collected_data").returning("payment_id");
  const rows = await ("paymentId" in of
    ? deletion.where("payment_id", "=", of.paymentId)
    : // EVM addresses are stored in lower case; wallets and explorers show them with a checksum in mixed case.
      deletion.where("account", "in", [of.account, of.account.toLowerCase()])
  ).execute();
  return rows.map(({ payment_id }) => payment_id);
}

/** Deletes data whose retention is over, and returns how many rows. */
export async function deleteOverdueData(db: Db, args: { now: Date; limit: number }): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("collected_data")
    .where(
      sql<boolean>`id in (select id from collected_data where delete_at <= ${args.now} order by delete_at limit ${args.limit})`,
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
