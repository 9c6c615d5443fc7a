import { type Insertable, type RawBuilder, sql } from "kysely";
import type { Tables } from "./tables.ts";

/** Tables without a column of type json, whose values could not be told from text here. */
type Table = "transfer" | "observation" | "transaction";

/**
 * Returns the beginning of an insert statement for rows: `insert into … select …`. The rows are one parameter, so the text
 * depends on their columns alone, and neither the driver nor the planner handles a parameter for every value. All rows
 * have the columns of the first one (see `groupByColumns`).
 */
export function insertRows<T extends Table>(
  table: T,
  rows: readonly [Insertable<Tables[T]>, ...Insertable<Tables[T]>[]],
): RawBuilder<unknown> {
  const columns = sql.join(Object.keys(rows[0]).map((column) => sql.ref(column)));
  return sql`insert into ${sql.table(table)} (${columns})
    select ${columns} from json_populate_recordset(null::${sql.table(table)}, ${JSON.stringify(rows.map(toJson))}::json)`;
}

/** Groups rows that set the same columns. A column that a row leaves undefined gets its default. */
export function groupByColumns<R extends object>(rows: readonly R[]): [R, ...R[]][] {
  const defined = rows.map((row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)));
  const groups = Map.groupBy(defined as R[], (row) => Object.keys(row).sort().join(" "));
  return [...groups.values()] as [R, ...R[]][];
}

function toJson(row: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, toJsonValue(value)]));
}

function toJsonValue(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  return Buffer.isBuffer(value) ? `\\x${value.toString("hex")}` : value;
}
