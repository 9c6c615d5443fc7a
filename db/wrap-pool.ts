import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";
import { createStatementNames } from "./prepared-statements.ts";

/**
 * Wraps a pool. Its connections prepare the statements that are worth it, and a connection that Postgres has ended is not
 * used again: the error of its last statement arrives before the end of the connection.
 */
export function wrapPool(pool: pg.Pool): PostgresPool {
  const nameOf = createStatementNames();
  const clients = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    let isEnded = false;
    const query = async (text: string, parameters: readonly unknown[]) => {
      try {
        return await client.query({ text, values: [...parameters], name: nameOf(text, parameters) });
      } catch (error) {
        isEnded ||= error instanceof pg.DatabaseError && error.severity === "FATAL";
        throw error;
      }
    };
    // All other members are those of the client.
    return Object.create(client, { query: { value: query }, release: { value: () => client.release(isEnded) } });
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
