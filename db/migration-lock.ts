import { setTimeout as pause } from "node:timers/promises";
import { sql } from "kysely";
import type { Db, Pool } from "./tables.ts";

/** A session that `migrate` waits for. `address` is null for a local one, and where the owner may not see it. */
export type BlockingSession = { pid: number; login: string | null; application: string | null; address: string | null };

/** The name by which Postgres lists the sessions of `migrate`. */
export const MIGRATE_APPLICATION = "pay-migrate";
/** How often a replica that waits for another one's migration checks again, milliseconds. */
const REPLICA_POLL_MS = 250;
/** How long `migrate` waits for a session before it reports it, and how often it checks while it migrates, milliseconds. */
const REPORT_AFTER_MS = 5_000;
/** How often a session is reported, milliseconds. */
const REPORT_EVERY_MS = 60_000;

/**
 * Runs `work` while no other replica runs it. A transaction of its own holds the lock and nothing else, so that a proxy
 * that assigns connections per transaction keeps it. A waiting replica polls, because a session that waited for the lock
 * would prevent a concurrent index build from finishing.
 *
 * Any login may take this lock and the one of Kysely, because a database without tables has no other. The function reports
 * sessions that hold them, and others that `work` waits for, after five seconds and then each minute.
 * @param onBlocked called for each of these sessions
 */
export async function whileLocked<T>(
  db: Pool,
  work: () => Promise<T>,
  onBlocked: (session: BlockingSession) => void,
): Promise<T> {
  const report = createReport(onBlocked);
  for (;;) {
    const locked = await db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ acquired: boolean }>`
        select pg_try_advisory_xact_lock(hashtextextended('migrate', 0)) as acquired`.execute(trx);
      if (!rows[0]?.acquired) {
        await report(() => listHolders(trx));
        return undefined;
      }
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx);
      const stop = new AbortController();
      const watching = watchBlockers(trx, report, stop.signal);
      try {
        return { result: await work() };
      } finally {
        stop.abort();
        await watching;
      }
    });
    if (locked) return locked.result;
    await pause(REPLICA_POLL_MS);
  }
}

type Report = (list: () => Promise<BlockingSession[]>) => Promise<void>;

/** Creates the function that reports listed sessions when a report is due. */
function createReport(onBlocked: (session: BlockingSession) => void): Report {
  let dueAt = performance.now() + REPORT_AFTER_MS;
  return async (list) => {
    if (performance.now() < dueAt) return;
    const sessions = await list();
    if (sessions.length > 0) dueAt = performance.now() + REPORT_EVERY_MS;
    for (const session of sessions) onBlocked(session);
  };
}

/** Reports the sessions that other sessions of `migrate` wait for, until the signal is aborted. */
async function watchBlockers(trx: Db, report: Report, signal: AbortSignal): Promise<void> {
  try {
    for (;;) {
      await pause(REPORT_AFTER_MS, undefined, { signal });
      await report(() => listBlockers(trx));
    }
  } catch {
    // The work has ended, or the connection is lost, which the commit reports.
  }
}

/** Lists the sessions that hold the lock of `whileLocked`. A bigint key is listed as its two halves. */
async function listHolders(db: Db): Promise<BlockingSession[]> {
  const { rows } = await sql<BlockingSession>`
    select l.pid, a.usename as login, a.application_name as application, host(a.client_addr) as address
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('migrate', 0)`.execute(db);
  return rows;
}

/**
 * Lists the sessions that sessions of `migrate` wait for, whatever the lock. The statement has no parameters: one with parameters
 * would keep its snapshot until the next statement of the transaction, and an index build would wait for it.
 */
async function listBlockers(db: Db): Promise<BlockingSession[]> {
  const { rows } = await sql<BlockingSession>`
    select distinct a.pid, a.usename as login, a.application_name as application, host(a.client_addr) as address
    from pg_stat_activity waiting cross join unnest(pg_blocking_pids(waiting.pid)) as blocking (pid)
    join pg_stat_activity a on a.pid = blocking.pid
    where waiting.datname = current_database() and waiting.application_name = ${sql.lit(MIGRATE_APPLICATION)}
      and waiting.wait_event_type = 'Lock'`.execute(db);
  return rows;
}
