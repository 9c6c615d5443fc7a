import { sql } from "kysely";
import type { Finding } from "../findings.ts";
import type { Db } from "../tables.ts";

/** Returns true for one caller when the check of the ledger is due. It is due at `nextAt` if the caller does not end it. */
export async function takeLedgerCheck(db: Db, args: { now: Date; nextAt: Date }): Promise<boolean> {
  const row = await db
    .updateTable("ledger_check")
    .set({ due_at: args.nextAt })
    .where("due_at", "<=", args.now)
    .returning("due_at")
    .executeTakeFirst();
  return row !== undefined;
}

/** Records that a check has ended. The next one is due at `nextAt`. */
export async function endLedgerCheck(db: Db, args: { nextAt: Date }): Promise<void> {
  await db.updateTable("ledger_check").set({ due_at: args.nextAt }).execute();
}

/** Stores the findings of a check in place of those of the previous one. */
export async function replaceFindings(db: Db, findings: readonly Finding[], at: Date): Promise<void> {
  await db.updateTable("ledger_check").set({ checked_at: at }).execute();
  await db.deleteFrom("ledger_finding").execute();
  await addFindings(db, findings, at);
}

/** Adds findings to those of the previous check, of which it keeps all. */
export async function addFindings(db: Db, findings: readonly Finding[], at: Date): Promise<void> {
  if (findings.length === 0) return;
  await db
    .insertInto("ledger_finding")
    .values(findings.map((finding) => ({ ...finding, at })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Returns the number of findings of each kind in the newest check. */
export async function countFindings(db: Db): Promise<{ kind: string; count: number }[]> {
  const { rows } = await sql<{ kind: string; count: number }>`
    select kind, count(*)::int as count from ledger_finding group by kind`.execute(db);
  return rows;
}

/** Returns when the ledger was last checked; before the first check, when the database was migrated. */
export async function findLastCheck(db: Db): Promise<Date> {
  return (await db.selectFrom("ledger_check").select("checked_at").executeTakeFirstOrThrow()).checked_at;
}
