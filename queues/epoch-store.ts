import type { RedisClient } from "./redis-connections.ts";

/**
 * Keeps the highest count of the database's epoch that any process has seen in Redis. `redis` is a connection that fails
 * fast. Reading returns undefined after an error: a Redis that is unavailable or empty is not evidence about the database.
 */
export function createEpochStore(redis: RedisClient, prefix: string) {
  const key = `${prefix}:database-epoch`;
  return {
    async read(): Promise<number | undefined> {
      const found = await redis.zscore(key, "count").catch(() => null);
      return found === null ? undefined : Number(found);
    },
    async raise(count: number): Promise<void> {
      // GT never lowers the count.
      await redis.zadd(key, "GT", count, "count").catch(() => undefined);
    },
  };
}
