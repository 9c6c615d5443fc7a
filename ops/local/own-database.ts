import { randomBytes } from "node:crypto";
import type { Service } from "./service.ts";
import { execute, namedDatabase } from "./sql.ts";

/**
 * A database of the stack's own on a Postgres that somebody else runs: what an earlier stack wrote belongs to a chain
 * that is gone. Dropped when it is closed.
 */
export async function makeOwnDatabase(server: Service): Promise<Service> {
  const name = `pay_local_${randomBytes(4).toString("hex")}`;
  await execute(server.url, `create database ${name}`);
  const drop = () => execute(server.url, `drop database if exists ${name} with (force)`).then(() => undefined);
  return { ...server, url: namedDatabase(server.url, name), close: drop };
}
