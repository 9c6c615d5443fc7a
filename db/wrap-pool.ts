import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";
import { inSpan } from "../runtime/tracing/spans.ts";
import { describeStatement } from "./describe-statement.ts";
import { createStatementNames } from "./prepared-statements.ts";

/**
 * Wraps a pool. Its connections prepare the statements that are worth it, until a pooler proves that it does not pass them
 * on. A connection after which the next statement would fail too is not used again (`isUnusableAfter`).
 * @param options.onUnpreparable called once, when the pool stops preparing statements
 */
export function wrapPool(pool: pg.Pool, { onUnpreparable }: { onUnpreparable: (error: Error) => void }): PostgresPool {
  let nameOf: ReturnType<typeof createStatementNames> = createStatementNames();
  const stopPreparing = (error: Error) => {
    if (nameOf === neverNamed) return;
    nameOf = neverNamed;
    onUnpreparable(error);
  };
  const clients = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    let isUnusable = false;
    let unanswered: unknown;
    const query = async (text: string, parameters: readonly unknown[]) => {
      // A statement after an unanswered one (the ROLLBACK of its transaction) would wait behind it for a whole timeout.
      if (unanswered !== undefined) throw unanswered;
      try {
        const run = () => client.query({ text, values: [...parameters], name: nameOf(text, parameters) });
        return await inSpan(() => describeStatement(text), run);
      } catch (error) {
        isUnusable ||= isUnusableAfter(error);
        if (isUnanswered(error)) unanswered = error;
        if (isUnpreparable(error)) stopPreparing(error);
        throw error;
      }
    };
    // All other members are those of the client.
    return Object.create(client, { query: { value: query }, release: { value: () => client.release(isUnusable) } });
  };
  return {
    async connect() {
      const client = await pool.connect();
      const wrapped = clients.get(client) ?? wrap(client);
      clients.set(client, wrapped);
      return wrapped;
    },
    end: () => pool.end(),
    options: pool.options,
  };
}

const neverNamed = () => undefined;

/**
 * Returns true after an error that ends or spoils its connection: Postgres has closed it (the error of the last statement
 * arrives before the end of the connection), the server has become read-only (SQLSTATE 25006, a demoted primary), it does
 * not answer, or a migration has made a prepared statement invalid.
 */
function isUnusableAfter(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return isUnanswered(error);
  return error.severity === "FATAL" || error.code === "25006" || isUnpreparable(error) || hasStalePlan(error);
}

/** The error of pg's `query_timeout`. The connection still waits for the answer. */
const isUnanswered = (error: unknown) => error instanceof Error && error.message === "Query read timeout";

/** SQLSTATE feature_not_supported: also "cached plan must not change result type", of a statement prepared before a migration. */
const hasStalePlan = ({ code, message }: pg.DatabaseError) => code === "0A000" && message.includes("cached plan");

/**
 * SQLSTATE invalid_sql_statement_name and duplicate_prepared_statement: a pooler has moved the session to a connection that
 * lacks the statement, or on which another session has prepared it.
 */
const isUnpreparable = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && (error.code === "26000" || error.code === "42P05");
