import { sql } from "kysely";
import type { Db } from "./tables.ts";

/** A row whose job is owed: the how-manieth ring this is. */
export type DueRow = { id: string; again: number };

/**
 * Rows whose due time has passed. Each is pushed to a later due time in the same statement, longer every time up to a
 * minute, so that several sweeps never find the same row and a row in trouble is not rung for ever more often.
 * @param graceMs how long past its due time a row is left to the job that was rung for it
 */
export async function takeDue(
  db: Db,
  args: { table: "payment" | "attempt" | "transfer" | "settlement"; now: Date; limit: number; graceMs?: number },
): Promise<DueRow[]> {
  const before = new Date(args.now.getTime() - (args.graceMs ?? 0));
  const { rows } = await sql<DueRow>`
    update ${sql.table(args.table)} set due_try = due_try + 1,
      due_at = ${args.now}::timestamptz + least(60, power(2, least(due_try, 6))) * interval '1 second'
    where id in (
      select id from ${sql.table(args.table)} where due_at <= ${before} order by due_at limit ${args.limit} for update skip locked
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
