import { inject } from "vitest";
import type { Role } from "../../db/grants/roles.ts";
import { createLogins, type DatabaseLogins, loginUrl } from "../../local/database-logins.ts";

/** The logins of private servers, by host and port. They end with their server. */
const ofPrivateServers = new Map<string, Promise<DatabaseLogins>>();

/** Returns the URL by which a process of a role connects to a database, whose owner's URL is given. */
export async function roleUrl(databaseUrl: string, role: Role): Promise<string> {
  const { postgresUrl, logins } = inject("services");
  const { host } = new URL(databaseUrl);
  if (host === new URL(postgresUrl).host) return loginUrl(databaseUrl, role, logins);
  const made = ofPrivateServers.get(host) ?? createLogins(databaseUrl);
  ofPrivateServers.set(host, made);
  return loginUrl(databaseUrl, role, await made);
}

/** Returns an environment whose `DATABASE_URL` connects in a role. A URL that reaches no database stays as it is. */
export async function inRole(role: Role, env: Record<string, string>): Promise<Record<string, string>> {
  const { DATABASE_URL } = env;
  if (DATABASE_URL === undefined) return env;
  return { ...env, DATABASE_URL: await roleUrl(DATABASE_URL, role).catch(() => DATABASE_URL) };
}
