import { type RawBuilder, sql } from "kysely";
import type { Machine, NextOf, StateOf } from "./states.ts";
import type { Db } from "./tables.ts";

/** Columns to set along with a move; a value may be a SQL expression. */
export type Setting = Record<string, unknown | RawBuilder<unknown>>;

/**
 * Moves rows of a machine from one state to another, with an event row for each, in one statement. (The event of a row's
 * first state is written by a trigger.)
 * The `where state = from` is what decides a race: only rows that stood in `from` move. Gives the ids that moved; an
 * id that is missing has been moved by somebody else, which is not an error. Rows are locked in the order of their ids,
 * so that two moves of overlapping rows cannot wait for each other.
 * @param where a further guard, in SQL, on the row (for example `expires_at > …`)
 */
export async function moveRows<M extends Exclude<Machine, "transaction">, S extends StateOf<M>>(
  db: Db,
  machine: M,
  move: {
    ids: readonly string[];
    from: S;
    to: NextOf<M, S>;
    at: Date;
    set?: Setting;
    detail?: Record<string, unknown>;
    where?: RawBuilder<unknown>;
  },
): Promise<string[]> {
  if (move.ids.length === 0) return [];
  const version = machine === "payment" ? [sql`state_version = state_version + 1`, sql`updated_at = ${move.at}`] : [];
  const settings = Object.entries(move.set ?? {}).map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
  const set = sql.join([sql`state = ${move.to}`, ...version, ...settings]);
  const result = await sql<{ subject: string }>`
    with moved as (
      update ${sql.table(machine)} set ${set}
      where id in (
        select id from ${sql.table(machine)}
        where id = any(${move.ids}) and state = ${move.from} ${move.where ? sql`and ${move.where}` : sql``}
        order by id for update
      )
      returning id
    )
    insert into event (machine, subject, from_state, to_state, detail, at)
    select ${machine}, id, ${move.from}, ${move.to}, ${move.detail ? JSON.stringify(move.detail) : null}::jsonb, ${move.at} from moved
    returning subject`.execute(db);
  return result.rows.map((row) => row.subject);
}
