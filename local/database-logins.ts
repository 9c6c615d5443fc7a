import { randomBytes } from "node:crypto";
import { type Role, roles } from "../db/grants/roles.ts";
import { execute } from "./execute-sql.ts";

/** What the names of one server's logins have in common, and their password. */
export type DatabaseLogins = { suffix: string; password: string };

/**
 * Creates a login for each role of the service (db/grants/roles.ts). Logins belong to the server: they work in all of its
 * migrated databases. The role of `ownerUrl` must be allowed to create roles.
 */
export async function createLogins(ownerUrl: string): Promise<DatabaseLogins> {
  const logins = { suffix: randomBytes(4).toString("hex"), password: randomBytes(12).toString("hex") };
  const statements = Object.values(roles).map(
    (role) => `create role ${role}_${logins.suffix} login password '${logins.password}' in role ${role}`,
  );
  await execute(ownerUrl, statements.join("; "));
  return logins;
}

/** Returns the URL by which a process of a role connects to a database. */
export function loginUrl(databaseUrl: string, role: Role, { suffix, password }: DatabaseLogins): string {
  const url = new URL(databaseUrl);
  url.username = `${roles[role]}_${suffix}`;
  url.password = password;
  return url.href;
}

/** Removes the logins from their server. */
export async function dropLogins(ownerUrl: string, { suffix }: DatabaseLogins): Promise<void> {
  const names = Object.values(roles).map((role) => `${role}_${suffix}`);
  await execute(ownerUrl, `drop role if exists ${names.join(", ")}`);
}
