import { sql } from "kysely";
import type { Db } from "./tables.ts";

/** A row whose job is owed: the how-manieth ring this is. */
export type DueRow = { id: string; again: number };

/**
 * Rows whose due time has passed. Each is pushed to a later due time in the same statement, longer every time up to a
 * minute, so that several sweeps never find the same row and a row in trouble is not rung for ever more often.
 */
export async function takeDue(
  db: Db,
  args: { table: "payment" | "attempt" | "transfer" | "settlement"; now: Date; limit: number },
): Promise<DueRow[]> {
  const { rows } = await sql<DueRow>`
    update ${sql.table(args.table)} set due_try = due_try + 1,
      due_at = ${args.now}::timestamptz + least(60, power(2, least(due_try, 6))) * interval '1 second'
    where id in (
      select id from ${sql.table(args.table)} where due_at <= ${args.now} order by due_at limit ${args.limit} for update skip locked
    )
    returning id, due_try as again`.execute(db);
  return rows;
}

/** Chains whose watcher has not been heard of, and the block it waits for. */
export async function takeDueChains(
  db: Db,
  args: { now: Date },
): Promise<{ chain: string; block: number; again: number }[]> {
  const { rows } = await sql<{ chain: string; block: number; again: number }>`
    update chain_cursor set due_try = due_try + 1, due_at = ${args.now}::timestamptz + interval '2 seconds'
    where due_at <= ${args.now}
    returning chain, number + 1 as block, due_try as again`.execute(db);
  return rows;
}

/** How long the oldest row of each kind has been due, seconds; 0 when nothing is overdue. */
export async function readOldestDue(db: Db, now: Date): Promise<{ table: string; seconds: number }[]> {
  const { rows } = await sql<{ table: string; seconds: number }>`
    select 'payment' as table, extract(epoch from ${now}::timestamptz - min(due_at))::float8 as seconds from payment where due_at <= ${now}
    union all select 'attempt', extract(epoch from ${now}::timestamptz - min(due_at))::float8 from attempt where due_at <= ${now}
    union all select 'transfer', extract(epoch from ${now}::timestamptz - min(due_at))::float8 from transfer where due_at <= ${now}
    union all select 'settlement', extract(epoch from ${now}::timestamptz - min(due_at))::float8 from settlement where due_at <= ${now}
    union all select 'chain_cursor', extract(epoch from ${now}::timestamptz - min(due_at))::float8 from chain_cursor where due_at <= ${now}`.execute(
    db,
  );
  return rows.map((row) => ({ ...row, seconds: row.seconds ?? 0 }));
}
