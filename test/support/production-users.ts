import { readFile } from "node:fs/promises";
import type { Redis } from "ioredis";

/** The password of every user of the files in ops/redis that a test creates. */
export const usersPassword = "secret";

/** Returns the lines of a file of ops/redis, with that password. */
export async function readUsers(file: string): Promise<string[]> {
  const text = await readFile(new URL(`../../ops/redis/${file}`, import.meta.url), "utf8");
  return text
    .trim()
    .replaceAll(/#\w+_PASSWORD_SHA256/g, `>${usersPassword}`)
    .split("\n");
}

/** Creates the users by which replicas and sentinels connect to a server. */
export async function createReplicationUsers(redis: Redis): Promise<void> {
  for (const line of await readUsers("replication-users.acl")) {
    const [, ...rules] = line.split(" ");
    await redis.call("ACL", "SETUSER", ...rules);
  }
}

/** The settings with which a server follows its master as the replicas' user. */
export const asReplica = ["--masteruser", "pay_replica", "--masterauth", usersPassword];
