import { sql } from "kysely";
import type { AuditHead } from "../../runtime/audit-chain.ts";
import type { Db, Pool } from "../tables.ts";

/**
 * Stores the head of each day before the UTC day of `now` that has none yet. Such a day takes no more entries. Returns
 * the new heads.
 */
export async function closeAuditDays(db: Pool, now: Date): Promise<AuditHead[]> {
  const today = now.toISOString().slice(0, 10);
  const { rows: open } = await sql`
    select from audit_entry
    where day < ${today}::date and day > coalesce((select max(day) from audit_head), '-infinity') limit 1`.execute(db);
  if (open.length === 0) return [];
  return db.transaction().execute(async (db) => {
    await sql`select lock_audit_chain()`.execute(db);
    const { rows } = await sql<AuditHead>`
      insert into audit_head (day, sequence, hash, at)
      select distinct on (day) day, sequence, hash, ${now}::timestamptz from audit_entry
      where day < ${today}::date and day > coalesce((select max(day) from audit_head), '-infinity')
      order by day, sequence desc
      returning day::text as day, sequence, encode(hash, 'hex') as hash`.execute(db);
    return rows;
  });
}

/** Returns the oldest head that is not exported, locked until the commit; undefined while another process has it. */
export async function takeUnexportedHead(db: Db): Promise<AuditHead | undefined> {
  const { rows } = await sql<AuditHead>`
    select day::text as day, sequence, encode(hash, 'hex') as hash from audit_head
    where exported_at is null order by audit_head.day limit 1 for update skip locked`.execute(db);
  return rows[0];
}

/** Stores when the sink accepted the head of a day. */
export async function markHeadExported(db: Db, { day, at }: { day: string; at: Date }): Promise<void> {
  await sql`update audit_head set exported_at = ${at} where day = ${day}::date`.execute(db);
}

/** Returns when the oldest head was stored that is not exported; null when all are. */
export async function findOldestUnexportedHead(db: Db): Promise<Date | null> {
  const { rows } = await sql<{ at: Date | null }>`
    select min(at) as at from audit_head where exported_at is null`.execute(db);
  return rows[0]?.at ?? null;
}

/** Returns when the oldest entry was made that no head covers; null when there is none. */
export async function findOldestOpenEntry(db: Db): Promise<Date | null> {
  const { rows } = await sql<{ at: Date | null }>`
    select min(at) as at from audit_entry
    where day > coalesce((select max(day) from audit_head), '-infinity')`.execute(db);
  return rows[0]?.at ?? null;
}

/** Returns how many changes were made after a time with a login of the database and without the service. */
export async function countLoginEntries(db: Db, since: Date): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from audit_entry
    where day >= (${since}::timestamptz at time zone 'UTC')::date and at > ${since} and actor_kind = 'login'`.execute(
    db,
  );
  return rows[0]?.count ?? 0;
}

/** Returns the heads of all days that have ended, oldest first. */
export async function listAuditHeads(db: Db): Promise<AuditHead[]> {
  const { rows } = await sql<AuditHead>`
    select day::text as day, sequence, encode(hash, 'hex') as hash from audit_head order by audit_head.day`.execute(db);
  return rows;
}
