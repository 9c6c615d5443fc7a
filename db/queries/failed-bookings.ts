import { type RawBuilder, type Selectable, sql } from "kysely";
import type { Db, FailedKind, Tables } from "../tables.ts";

export type FailedBookingRow = Selectable<Tables["failed_booking"]>;

/** The key of a row that could not be booked: its chain, its kind, and its unique key within that kind. */
export type FailedKey = { chain: string; kind: FailedKind; subject: string };

/** A movement that could not be recorded, with everything that a retry needs. */
export type FailedMovement = { block_number: number; movement: Record<string, unknown> };

/** Records that a row could not be booked. Each further failure doubles the time until the retry, up to one hour. */
export async function insertFailure(
  db: Db,
  { chain, kind, subject, error, of }: FailedKey & { error: string; of?: FailedMovement | undefined },
): Promise<void> {
  await sql`
    insert into failed_booking as f (chain, kind, subject, block_number, movement, error, first_at, last_at, retry_at)
    values (${chain}, ${kind}, ${subject}, ${of?.block_number ?? null}, ${of ? JSON.stringify(of.movement) : null}::jsonb,
      ${error}, now(), now(), now() + interval '1 minute')
    on conflict (chain, kind, subject) do update
    set error = excluded.error, last_at = now(), retries = f.retries + 1,
      retry_at = now() + least(60, power(2, least(f.retries + 1, 6))) * interval '1 minute'`.execute(db);
}

/** SQL: the row has no failed booking that waits for its retry. `row.chain` and `row.subject` are columns of the row. */
export function isBookable(
  kind: FailedKind,
  row: { chain: string; subject: RawBuilder<unknown> },
): RawBuilder<boolean> {
  return sql<boolean>`not exists (
    select from failed_booking f
    where f.chain = ${sql.ref(row.chain)} and f.kind = ${kind} and f.subject = ${row.subject} and f.retry_at > now())`;
}

/** Returns the rows that have no failed booking waiting for its retry; see `isBookable`. */
export async function keepBookable<R>(
  db: Db,
  rows: readonly R[],
  { chain, kind, subjectOf }: { chain: string; kind: FailedKind; subjectOf: (row: R) => string },
): Promise<R[]> {
  if (rows.length === 0) return [];
  const failed = await db
    .selectFrom("failed_booking")
    .select("subject")
    .where("chain", "=", chain)
    .where("kind", "=", kind)
    .where(sql<boolean>`subject = any(${rows.map(subjectOf)})`)
    .where(sql<boolean>`retry_at > now()`)
    .execute();
  const subjects = new Set(failed.map(({ subject }) => subject));
  return rows.filter((row) => !subjects.has(subjectOf(row)));
}

/** Returns the failed bookings that a chain's watcher retries now. */
export async function listDueFailures(db: Db, chain: string): Promise<FailedBookingRow[]> {
  return db
    .selectFrom("failed_booking")
    .selectAll()
    .where("chain", "=", chain)
    .where(sql<boolean>`retry_at <= now()`)
    .orderBy("id")
    .limit(1_000)
    .execute();
}

/** Deletes failed bookings whose retry succeeded, which a repeated failure would have rescheduled. */
export async function deleteDueFailures(db: Db, ids: readonly number[]): Promise<void> {
  await db
    .deleteFrom("failed_booking")
    .where(sql<boolean>`id = any(${ids})`)
    .where(sql<boolean>`retry_at <= now()`)
    .execute();
}

/** Deletes failed movements whose blocks a reorg removed: those above a height, or those of the given transactions. */
export async function deleteFailedMovements(
  db: Db,
  args: { chain: string } & ({ above: number } | { txHashes: readonly string[] }),
): Promise<void> {
  const gone =
    "above" in args
      ? sql<boolean>`block_number > ${args.above}`
      : sql<boolean>`movement ->> 'txHash' = any(${args.txHashes})`;
  await db
    .deleteFrom("failed_booking")
    .where("chain", "=", args.chain)
    .where("kind", "=", "movement")
    .where(gone)
    .execute();
}

/** Returns all failed bookings, oldest first. */
export async function listFailures(db: Db, limit: number): Promise<FailedBookingRow[]> {
  return db.selectFrom("failed_booking").selectAll().orderBy("id").limit(limit).execute();
}

/** Makes one failed booking, or all of them, due for a retry now. Returns how many. */
export async function requestRetries(db: Db, id: number | undefined): Promise<number> {
  const update = db.updateTable("failed_booking").set({ retry_at: sql`now()` });
  const result = await (id === undefined ? update : update.where("id", "=", id)).executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/** Returns the number of failed bookings of each chain. */
export async function countFailures(db: Db): Promise<{ chain: string; count: number }[]> {
  return db
    .selectFrom("failed_booking")
    .select(["chain", sql<number>`count(*)::int`.as("count")])
    .groupBy("chain")
    .execute();
}
