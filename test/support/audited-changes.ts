import { sql } from "kysely";
import { listAuditEntries } from "../../db/queries/audit-entries.ts";
import type { Pool } from "../../db/tables.ts";

/** Returns all entries of the audit log, newest first. */
export const allEntries = (db: Pool) =>
  listAuditEntries(db, { day: undefined, subject: undefined, actor: undefined, limit: 10_000 });

/** Runs `work` while no entry can be written to the audit log. */
export async function withoutAuditLog<T>(db: Pool, work: () => Promise<T>): Promise<T> {
  await sql`alter table audit_entry add constraint no_entry check (false) not valid`.execute(db);
  try {
    return await work();
  } finally {
    await sql`alter table audit_entry drop constraint no_entry`.execute(db);
  }
}

/** Returns a digest of every row of every table. */
export async function digestTables(db: Pool): Promise<string> {
  const { rows: tables } = await sql<{ name: string }>`
    select tablename as name from pg_tables where schemaname = 'public' order by 1`.execute(db);
  const digests = tables.map(
    ({ name }) =>
      sql`select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as digest from ${sql.table(name)} t`,
  );
  const { rows } = await sql<{ digest: string }>`${sql.join(digests, sql` union all `)}`.execute(db);
  return rows.map((row, index) => `${tables[index]?.name} ${row.digest}`).join("\n");
}
