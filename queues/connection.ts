import { Redis } from "ioredis";

/**
 * A connection for putting jobs and messages: fails at once while Redis is away, so that an HTTP call never waits for
 * it (the sweep rings what was missed).
 */
export function openRedis(url: string, onError: (error: Error) => void): Redis {
  // A server that hangs is as good as away.
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 1_000,
    retryStrategy,
  });
  redis.on("error", onError);
  return redis;
}

/** A connection for consuming: waits for Redis to come back, as BullMQ's workers need it. */
export function openPatientRedis(url: string, onError: (error: Error) => void): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
  redis.on("error", onError);
  return redis;
}

/** Milliseconds to wait before the next try to connect. */
function retryStrategy(times: number): number {
  return Math.min(times * 50, 1_000);
}
