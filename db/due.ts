import { sql } from "kysely";
import type { Db, Verification } from "./tables.ts";

/** A row whose job is owed: the how-manieth ring this is. */
export type DueRow = { id: string; again: number };

type Args = { now: Date; limit: number; graceMs?: number };

/**
 * Rows whose due time has passed. Each is pushed to a later due time in the same statement, longer every time up to a
 * minute, so that several sweeps never find the same row and a row in trouble is not rung for ever more often.
 * @param graceMs how long past its due time a row is left to the job that was rung for it
 */
export async function takeDue(db: Db, args: Args & { table: "payment" | "settlement" | "refund" }): Promise<DueRow[]> {
  const { rows } = await sql<DueRow>`${pushDue(args.table, args)} returning id, due_try as again`.execute(db);
  return rows;
}

/** The same for attempts, each with how it is to be verified. */
export async function takeDueAttempts(db: Db, args: Args): Promise<(DueRow & { verification: Verification })[]> {
  const { rows } = await sql<DueRow & { verification: Verification }>`
    ${pushDue("attempt", args)} returning id, due_try as again, verification`.execute(db);
  return rows;
}

/** The same for transfers, each with the chain it is to be carried on, and whether its payer is code. */
export async function takeDueTransfers(db: Db, args: Args): Promise<(DueRow & { chain: string; isWallet: boolean })[]> {
  const { rows } = await sql<DueRow & { chain: string; isWallet: boolean }>`
    ${pushDue("transfer", args)} returning id, due_try as again, chain, smart_wallet as "isWallet"`.execute(db);
  return rows;
}

function pushDue(table: string, { now, limit, graceMs = 0 }: Args) {
  const before = new Date(now.getTime() - graceMs);
  return sql`
    update ${sql.table(table)} set due_try = due_try + 1,
      due_at = ${now}::timestamptz + least(60, power(2, least(due_try, 6))) * interval '1 second'
    where id in (
      select id from ${sql.table(table)} where due_at <= ${before} order by due_at limit ${limit} for update skip locked
    )`;
}

/** Which of these chains' watchers have not been heard of, and the block each waits for. */
export async function takeDueChains(
  db: Db,
  args: { chains: readonly string[]; now: Date },
): Promise<{ chain: string; block: number; again: number }[]> {
  const { rows } = await sql<{ chain: string; block: number; again: number }>`
    update chain_cursor set due_try = due_try + 1, due_at = ${args.now}::timestamptz + interval '2 seconds'
    where due_at <= ${args.now} and chain = any(${args.chains})
    returning chain, number + 1 as block, due_try as again`.execute(db);
  return rows;
}
