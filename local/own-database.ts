import { randomBytes } from "node:crypto";
import { execute, namedDatabase } from "./execute-sql.ts";
import type { Service } from "./service.ts";

/**
 * Creates a database for the stack on a Postgres that it did not start. The rows of an earlier stack refer to a chain that no
 * longer exists. The database is dropped when it is closed.
 */
export async function makeOwnDatabase(server: Service): Promise<Service> {
  const name = `pay_local_${randomBytes(4).toString("hex")}`;
  await execute(server.url, `create database ${name}`);
  const drop = () => execute(server.url, `drop database if exists ${name} with (force)`).then(() => undefined);
  return { ...server, url: namedDatabase(server.url, name), close: drop };
}
