import { sql } from "kysely";
import { pino } from "pino";
import { Registry } from "prom-client";
import { migrateDatabase } from "../../db/migrate.ts";
import { openDb } from "../../db/open.ts";
import type { Pool } from "../../db/tables.ts";
import { startPostgres } from "../../local/postgres.ts";
import type { Say } from "../../local/service.ts";
import { removeHistory } from "../../payments/maintenance/remove-history.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { printTable } from "./bench-stats.ts";
import { generateHistory } from "./history/generate-history.ts";

/** Payments of a day, as of two million in a year: tables with a row for each merchant and day depend on it. */
const PER_DAY = 5_479;
const RETENTION_DAYS = 30;
/** The removal runs so many days after the newest payment. Rows of the last seven days by the clock of Postgres stay. */
const DAYS_LATER = 23;
const YOUNG_DAYS = RETENTION_DAYS - DAYS_LATER;

/**
 * Prints the bytes that a payment occupies in each table, before and after the retention of 30 days, what the removal costs,
 * and what remains of it when the tables are written again (vacuum full).
 */
export async function benchRetention({ history, say }: { history: number; say: Say }): Promise<void> {
  const postgres = await startPostgres({ own: true, say });
  try {
    await migrateDatabase(postgres.url);
    await generateHistory(postgres.url, { payments: history, days: Math.ceil(history / PER_DAY), say });
    const db = openDb(postgres.url, { max: 2, statementTimeoutMs: 0 });
    try {
      await measure(db, { history, say });
    } finally {
      await db.destroy();
    }
  } finally {
    await postgres.close();
  }
}

async function measure(db: Pool, { history, say }: { history: number; say: Say }): Promise<void> {
  // The payments' chains have been read up to now.
  await sql`
    insert into chain_cursor (chain, number, block_id, final_number, chain_time)
    select distinct chain, 0, '', 0, now() from payment_option`.execute(db);
  const before = await readSizes(db);
  const begun = { wal: await readWal(db), at: performance.now() };
  const removed = await removeAll(db, say);
  const seconds = (performance.now() - begun.at) / 1000;
  const wal = (await readWal(db)) - begun.wal;
  await sql`vacuum`.execute(db);
  const vacuumed = await readSizes(db);
  await sql`vacuum full`.execute(db);
  const rewritten = await readSizes(db);

  const { rows } = await sql<{ old: number }>`
    select count(*)::integer as old from payment
    where created_at < now() - ${YOUNG_DAYS} * interval '1 day'`.execute(db);
  const old = rows[0]?.old ?? 0;
  const lines: [string, string][] = [...before].map(([table, size]) => {
    // Rows of younger payments occupy what they did before.
    const left = ((rewritten.get(table) ?? 0) - (size / history) * (history - old)) / old;
    const [first, last] = [size / history, Math.max(0, left)].map((bytes) => bytes.toFixed(0));
    return [table, `${first} bytes a payment, ${last} after ${RETENTION_DAYS} days`];
  });
  const sum = (sizes: ReadonlyMap<string, number>) => [...sizes.values()].reduce((one, other) => one + other, 0);
  const young = (sum(before) / history) * (history - old);
  lines.push([
    "all",
    `${(sum(before) / history).toFixed(0)} bytes a payment, ${((sum(rewritten) - young) / old).toFixed(0)} after ${RETENTION_DAYS} days`,
  ]);
  lines.push([
    "files",
    `${[before, vacuumed, rewritten].map((sizes) => `${(sum(sizes) / 2 ** 20).toFixed(0)} MB`).join(", then ")}`,
  ]);
  lines.push([
    "removal",
    `${removed} rows of ${old} payments in ${seconds.toFixed(1)} s; ${(wal / old).toFixed(0)} bytes of WAL a payment`,
  ]);
  printTable(lines);
  say("done");
}

async function removeAll(db: Pool, say: Say): Promise<number> {
  const days = {
    attempt: RETENTION_DAYS,
    webhook_event: RETENTION_DAYS,
    event: RETENTION_DAYS,
    payment_option: RETENTION_DAYS,
  };
  const deps = {
    db,
    now: () => new Date(Date.now() + DAYS_LATER * 86_400_000),
    log: pino({ level: "warn" }),
    metrics: createMetrics(new Registry(), "worker"),
  };
  for (let before = -1; ; ) {
    await removeHistory(deps, { days, exportHistory: undefined });
    const { rows } = await sql<{ removed: number }>`select sum(removed)::bigint as removed from retention`.execute(db);
    say(`${rows[0]?.removed} rows removed`);
    const removed = rows[0]?.removed ?? 0;
    if (removed === before) return removed;
    before = removed;
  }
}

/** Returns the bytes of each table of payments with its indexes. */
async function readSizes(db: Pool): Promise<Map<string, number>> {
  const { rows } = await sql<{ name: string; bytes: number }>`
    select relname as name, pg_total_relation_size(oid) as bytes from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and reltuples > 1000
    order by bytes desc`.execute(db);
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

async function readWal(db: Pool): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`.execute(db);
  return rows[0]?.bytes ?? 0;
}
