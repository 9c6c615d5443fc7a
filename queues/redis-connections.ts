import { Redis } from "ioredis";

/**
 * Opens a connection for adding jobs and publishing messages. It fails at once while Redis is unavailable, so that an HTTP
 * request never waits for Redis. The sweep enqueues the jobs that were missed.
 */
export function openRedis(url: string, onError: (error: Error) => void): Redis {
  // A server that hangs counts as unavailable.
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 1_000,
    retryStrategy,
  });
  redis.on("error", onError);
  return redis;
}

/** Opens a connection for consuming and subscribing. It waits until Redis is available again, as BullMQ workers require. */
export function openRetryingRedis(url: string, onError: (error: Error) => void): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
  redis.on("error", onError);
  return redis;
}

/** Returns the delay before the next attempt to connect, milliseconds. */
function retryStrategy(times: number): number {
  return Math.min(times * 50, 1_000);
}
