import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** The moves of payments after an event, and the id of the newest event of any kind; 0 when there is none. */
export type RecentMoves = { newest: number; moves: { id: number; paymentId: string }[] };

/** Returns the moves of payments whose events have a higher id than `after`. Its cost does not depend on older payments. */
export async function listMovesAfter(db: Db, after: number): Promise<RecentMoves> {
  const { rows } = await sql<{ newest: number | null; id: number | null; subject: string | null }>`
    select n.newest, e.id, e.subject from (select max(id) as newest from event) n
    left join event e on e.id > ${after} and e.machine = 'payment' and e.from_state <> 'new'`.execute(db);
  const moves = rows.flatMap(({ id, subject }) =>
    id === null || subject === null ? [] : [{ id, paymentId: subject }],
  );
  return { newest: rows[0]?.newest ?? 0, moves };
}

/** Returns the id of the newest event older than `ms` milliseconds; 0 when there is none. Reads only the events since then. */
export async function findEventBefore(db: Db, ms: number): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select id from event where at < clock_timestamp() - ${ms}::float8 * interval '1 millisecond'
    order by id desc limit 1`.execute(db);
  return rows[0]?.id ?? 0;
}
