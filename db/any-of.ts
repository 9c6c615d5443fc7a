import { type RawBuilder, sql } from "kysely";

/**
 * Returns SQL for conditions on a text column such as `id = any(…)`. Postgres plans a prepared statement anew for each run while
 * it expects less work with the values than without them, and of an array that it does not know it expects ten values. So it would
 * plan every statement for fewer values again and again. It does not know the values of a subquery in either case.
 */
export function anyOf(values: readonly string[]): RawBuilder<unknown> {
  return sql`any(array(select unnest(${values}::text[])))`;
}
