import { createHash } from "node:crypto";

/** Runs of a statement in a process before its connections prepare it. */
const PREPARED_AFTER = 5;
/** Statements that a process prepares at most: each connection keeps the plans of those that it has run. */
const MAX_PREPARED = 400;
/** Texts whose runs are counted at most, so that texts which never repeat do not accumulate. */
const MAX_COUNTED = 2_000;

/**
 * The result of `select *` and `returning *` changes when a migration adds a column, which a prepared statement refuses. Rows
 * that are a parameter keep their columns.
 */
const RETURNS_ALL =
  /(?:\bselect|\bdistinct(?:\s+on\s*\([^*]*?\))?|\breturning|,)\s+(?:"?\w+"?\.)?\*(?!\s+from\s+(?:unnest|jsonb?_to_recordset)\()/i;

/**
 * Creates the function that names the statements which are worth preparing: Postgres then parses and plans them once per
 * connection. It returns undefined for a statement that is rare, has no parameters, or returns all columns of a table. A
 * name is a hash of its text: behind a pooler that shares connections among processes and confuses their statements, a
 * name can be missing or taken, but it never runs another statement.
 */
export function createStatementNames(): (text: string, parameters: readonly unknown[]) => string | undefined {
  const runs = new Map<string, number>();
  const names = new Map<string, string>();
  return (text, parameters) => {
    const name = names.get(text);
    if (name !== undefined || parameters.length === 0 || names.size >= MAX_PREPARED) return name;
    const count = (runs.get(text) ?? 0) + 1;
    if (count === 1 && runs.size >= MAX_COUNTED) runs.clear();
    runs.set(text, count);
    if (count < PREPARED_AFTER || RETURNS_ALL.test(text)) return undefined;
    runs.delete(text);
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 32);
    names.set(text, hash);
    return hash;
  };
}
