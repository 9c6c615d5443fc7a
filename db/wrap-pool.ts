import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";
import { inSpan } from "../runtime/tracing/spans.ts";
import { describeStatement } from "./describe-statement.ts";
import { createStatementNames } from "./prepared-statements.ts";

/**
 * Wraps a pool. Its connections prepare the statements that are worth it, and a connection that Postgres has ended is not
 * used again: the error of its last statement arrives before the end of the connection. Nor is a connection whose prepared statement
 * a migration has made invalid.
 */
export function wrapPool(pool: pg.Pool): PostgresPool {
  const nameOf = createStatementNames();
  const clients = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    let isUnusable = false;
    const query = async (text: string, parameters: readonly unknown[]) => {
      try {
        const run = () => client.query({ text, values: [...parameters], name: nameOf(text, parameters) });
        return await inSpan(() => describeStatement(text), run);
      } catch (error) {
        isUnusable ||= error instanceof pg.DatabaseError && (error.severity === "FATAL" || hasStalePlan(error));
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

/** SQLSTATE feature_not_supported: also "cached plan must not change result type", of a statement prepared before a migration. */
const hasStalePlan = ({ code, message }: pg.DatabaseError) => code === "0A000" && message.includes("cached plan");
