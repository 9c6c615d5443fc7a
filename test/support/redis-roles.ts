import {
  createRedisUsers,
  dropRedisUsers,
  type RedisRole,
  type RedisUsers,
  redisUserUrl,
} from "../../local/redis-users.ts";
import { parseRedisUrl } from "../../runtime/redis-url.ts";
import { addCleanup } from "./cleanups.ts";

/** The users of the key prefixes that processes of this file use, by the URL and the prefix. */
const known = new Map<string, Promise<RedisUsers>>();

/**
 * Returns an environment whose `REDIS_URL` connects as the user of a role. A URL that names a user, or reaches no Redis, stays
 * as it is.
 */
export async function inRedisRole(role: RedisRole, env: Record<string, string>): Promise<Record<string, string>> {
  const { REDIS_URL: url, REDIS_PREFIX: prefix = "pay" } = env;
  if (url === undefined || parseRedisUrl(url).login.username !== undefined) return env;
  const users = await usersOf(url, prefix).catch(() => undefined);
  return users === undefined ? env : { ...env, REDIS_URL: redisUserUrl(url, role, users) };
}

function usersOf(url: string, prefix: string): Promise<RedisUsers> {
  const key = `${url} ${prefix}`;
  const made = known.get(key) ?? createUntilEnd(url, prefix);
  known.set(key, made);
  made.catch(() => known.delete(key));
  return made;
}

async function createUntilEnd(url: string, prefix: string): Promise<RedisUsers> {
  const users = await createRedisUsers(url, prefix);
  addCleanup(async () => {
    known.delete(`${url} ${prefix}`);
    // A test may have stopped its own Redis.
    await dropRedisUsers(url, users).catch(() => undefined);
  });
  return users;
}
