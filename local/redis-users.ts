import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { onEachRedisNode } from "./redis-nodes.ts";

/** The roles of ops/redis/users.acl that processes of the service have. */
const roles = ["api", "worker", "board"] as const;
export type RedisRole = (typeof roles)[number];

/** What the names of the users of one key prefix have in common, and their password. */
export type RedisUsers = { suffix: string; password: string };

/** The users of production, whose keys begin with `pay`. */
const productionUsers = new URL("../ops/redis/users.acl", import.meta.url);

/**
 * Creates the users of ops/redis/users.acl for the keys of one prefix, so that each process may do what it may do in
 * production, on every node: users are not replicated. They outlive a restart of a Redis that `startRedis` has started. Throws when the
 * user of `ownerUrl` may not create users.
 */
export async function createRedisUsers(ownerUrl: string, prefix: string): Promise<RedisUsers> {
  const users = { suffix: randomBytes(4).toString("hex"), password: randomBytes(12).toString("hex") };
  const rules = readFileSync(productionUsers, "utf8")
    .split("\n")
    .filter((line) => roles.some((role) => line.startsWith(`user pay_${role} `)))
    .map((line) => line.split(" ").slice(1));
  await onEachRedisNode(ownerUrl, async (redis) => {
    for (const [name, ...words] of rules) {
      const own = words.map((word) => {
        if (word.endsWith("_PASSWORD_SHA256")) return `>${users.password}`;
        return word.replace(/^([~&])pay:/, `$1${prefix}:`);
      });
      await redis.call("ACL", "SETUSER", `${name}_${users.suffix}`, ...own);
    }
    await saveUsers(redis);
  });
  return users;
}

/** Returns the URL by which a process of a role connects to a Redis. */
export function redisUserUrl(ownerUrl: string, role: RedisRole, { suffix, password }: RedisUsers): string {
  return ownerUrl.replace(/:\/\/([^@]*@)?/, `://pay_${role}_${suffix}:${password}@`);
}

/** Removes the users from their Redis. */
export async function dropRedisUsers(ownerUrl: string, { suffix }: RedisUsers): Promise<void> {
  const names = roles.map((role) => `pay_${role}_${suffix}`);
  await onEachRedisNode(ownerUrl, async (redis) => {
    await redis.call("ACL", "DELUSER", ...names);
    await saveUsers(redis);
  });
}

/** Stores the users in the file of a Redis that has one; another Redis is not ours to restart. */
async function saveUsers(redis: Redis): Promise<void> {
  await redis.call("ACL", "SAVE").catch((error: unknown) => {
    if (!/not configured to use an ACL file/.test(String(error))) throw error;
  });
}
