import { Redis } from "ioredis";

/**
 * Opens a connection for adding jobs and publishing messages. It fails at once while Redis is unavailable, so that an HTTP
 * request never waits for Redis. The sweep enqueues the jobs that were missed.
 * @param ca the certificate authority of the server, in PEM; the public ones by default
 */
export function openRedis(url: string, onError: (error: Error) => void, ca?: string): Redis {
  // A server that hangs counts as unavailable.
  const redis = new Redis(url, {
    ...connectionOptions(ca),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 1_000,
    retryStrategy,
  });
  redis.on("error", onError);
  return redis;
}

/** Opens a connection for consuming and subscribing. It waits until Redis is available again, as BullMQ workers require. */
export function openRetryingRedis(url: string, onError: (error: Error) => void, ca?: string): Redis {
  const redis = new Redis(url, { ...connectionOptions(ca), maxRetriesPerRequest: null, retryStrategy });
  redis.on("error", onError);
  return redis;
}

/** Users of Redis may not run CLIENT SETINFO, with which ioredis reports its version. */
const connectionOptions = (ca: string | undefined) => ({
  disableClientInfo: true,
  ...(ca === undefined ? {} : { tls: { ca } }),
});

/** Returns the delay before the next attempt to connect, milliseconds. */
function retryStrategy(times: number): number {
  return Math.min(times * 50, 1_000);
}
