import type { Redis } from "ioredis";

/**
 * Keeps the highest count of the database's epoch that any process has seen in Redis, over a connection that fails fast.
 * An error gives undefined: a Redis that is away or has lost it says nothing about the database.
 */
export function createEpochMemory(redis: Redis, prefix: string) {
  const key = `${prefix}:database-epoch`;
  return {
    async read(): Promise<number | undefined> {
      const found = await redis.zscore(key, "count").catch(() => null);
      return found === null ? undefined : Number(found);
    },
    async raise(count: number): Promise<void> {
      // GT: never lower than before.
      await redis.zadd(key, "GT", count, "count").catch(() => undefined);
    },
  };
}
