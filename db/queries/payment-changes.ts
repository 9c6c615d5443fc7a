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
