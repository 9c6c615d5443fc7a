import { sql } from "kysely";
import { openDb } from "./open.ts";

/**
 * The schema as readable SQL, from Postgres's own catalogue, so that a migration shows up as a diff of db/schema.sql
 * without a pg_dump of the right version at hand.
 */
export async function dumpSchema(url: string): Promise<string> {
  const db = openDb(url, { max: 1, applicationName: "pay-schema" });
  try {
    const { rows: tables } = await sql<{ name: string; body: string }>`
      select c.relname as name, string_agg(line, E',\n' order by part, place, line) as body
      from pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
      cross join lateral (
        select 1 as part, a.attnum::int as place,
          '  ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
          || case when a.attidentity <> '' then ' generated always as identity' else '' end
          || case when a.attnotnull then ' not null' else '' end
          || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as line
        from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        union all
        select 2, 0, '  ' || pg_get_constraintdef(k.oid) from pg_constraint k
        where k.conrelid = c.oid and k.contype in ('p', 'u', 'c', 'f')
      ) lines
      where c.relkind = 'r' and c.relname not like 'kysely%'
      group by c.relname order by c.relname`.execute(db);
    const { rows: indexes } = await sql<{ line: string }>`
      select pg_get_indexdef(i.indexrelid) || ';' as line from pg_index i
      join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
      where c.relname not like 'kysely%' and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
      order by 1`.execute(db);
    const { rows: functions } = await sql<{ line: string }>`
      select pg_get_functiondef(p.oid) || ';' as line from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace and n.nspname = 'public' order by p.proname`.execute(db);
    const { rows: triggers } = await sql<{ line: string }>`
      select pg_get_triggerdef(t.oid) || ';' as line from pg_trigger t
      where not t.tgisinternal order by 1`.execute(db);
    const sections = [
      "-- Written by `npm run db:schema`; the migrations are what counts.",
      ...tables.map(({ name, body }) => `create table ${name} (\n${body}\n);`),
      indexes.map((row) => row.line).join("\n"),
      ...functions.map((row) => row.line.trim()),
      triggers.map((row) => row.line).join("\n"),
    ];
    return `${sections.join("\n\n")}\n`;
  } finally {
    await db.destroy();
  }
}
