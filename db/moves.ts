import { type RawBuilder, sql, type Updateable } from "kysely";
import { anyOf } from "./any-of.ts";
import type { Machine, NextOf, StateOf } from "./states.ts";
import type { Db, Tables } from "./tables.ts";

/** State machines whose rows have an id. A transaction has none. */
type MachineWithId = Exclude<Machine, "transaction">;
type Columns<M extends MachineWithId> = Omit<Updateable<Tables[M]>, "id" | "state">;

/** Columns to update together with a move. A value may be an SQL expression. */
export type ColumnUpdates<M extends MachineWithId> = {
  readonly [C in keyof Columns<M>]: Columns<M>[C] | RawBuilder<Columns<M>[C]>;
};

/**
 * Moves rows of a machine from one state to another and inserts an event for each, in one statement. (A trigger inserts the
 * event of a row's first state.) Returns the ids of the rows that moved.
 *
 * Only rows in the state `from` move, so one of several concurrent moves wins. An id that is missing in the result is not
 * an error: another worker has moved that row. Locks the rows in the order of their ids, which avoids deadlocks between
 * moves of overlapping rows.
 * @param move.where a further SQL condition on the row (for example `expires_at > …`)
 * @param move.given SQL: rows named `given` with the column `id`, whose values `set` uses for the row with that id
 */
export async function moveRows<M extends MachineWithId, S extends StateOf<M>>(
  db: Db,
  machine: M,
  move: {
    ids: readonly string[];
    from: S;
    to: NextOf<M, S>;
    at: Date;
    set?: ColumnUpdates<M>;
    detail?: Record<string, unknown>;
    where?: RawBuilder<unknown> | undefined;
    given?: RawBuilder<unknown>;
  },
): Promise<string[]> {
  if (move.ids.length === 0) return [];
  const version = machine === "payment" ? [sql`state_version = state_version + 1`] : [];
  const stamp = machine === "payment" || machine === "refund" ? [sql`updated_at = ${move.at}`] : [];
  const updates = Object.entries(move.set ?? {}).map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
  const set = sql.join([sql`state = ${move.to}`, ...version, ...stamp, ...updates]);
  const table = sql.table(machine);
  const result = await sql<{ subject: string }>`
    with moved as (
      update ${table} set ${set} ${move.given ? sql`from ${move.given}` : sql``}
      where ${table}.id in (
        select id from ${table}
        where id = ${anyOf(move.ids)} and state = ${move.from} ${move.where ? sql`and ${move.where}` : sql``}
        order by id for update
      ) ${move.given ? sql`and ${table}.id = given.id` : sql``}
      returning ${table}.id
    )
    insert into event (machine, subject, from_state, to_state, detail, at)
    select ${machine}, id, ${move.from}, ${move.to}, ${move.detail ? JSON.stringify(move.detail) : null}::jsonb, ${move.at} from moved
    returning subject`.execute(db);
  return result.rows.map((row) => row.subject);
}
