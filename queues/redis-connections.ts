import { Cluster, Redis, type RedisOptions } from "ioredis";
import { parseRedisUrl, type RedisTarget } from "../runtime/redis-url.ts";
import { createOwnerConnector } from "./owner-connector.ts";

/** A connection to one server, to the master that sentinels name, or to the nodes of a cluster. */
export type RedisClient = Redis | Cluster;

type Options = Omit<RedisOptions, "replyMapping">;

/** How long an answer may take before the connection is given up, milliseconds. BullMQ's longest command blocks for ten seconds. */
const SILENCE_MS = { failing: 5_000, retrying: 20_000 };
/** Attempts of a command on a cluster that has lost a node, before it fails, and the delay between two, milliseconds. */
const ATTEMPTS = { failing: 4, retrying: Number.POSITIVE_INFINITY };
const ATTEMPT_MS = 50;

/**
 * Opens a connection for adding jobs and publishing messages. It fails at once while Redis is unavailable, so that an HTTP
 * request never waits for Redis. The sweep enqueues the jobs that were missed.
 * @param url as `parseRedisUrl` takes it
 * @param ca the certificate authority of the server, in PEM; the public ones by default
 */
export function openRedis(url: string, onError: (error: Error) => void, ca?: string): RedisClient {
  const redis = open(parseRedisUrl(url), ca, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    // A server that hangs counts as unavailable.
    commandTimeout: 1_000,
    socketTimeout: SILENCE_MS.failing,
    reconnectOnError: (error) => (isDemoted(error) ? 1 : false),
  });
  redis.on("error", onError);
  return redis;
}

/** Opens a connection for consuming. It waits until Redis is available again, as BullMQ workers require. */
export function openRetryingRedis(url: string, onError: (error: Error) => void, ca?: string): RedisClient {
  const redis = open(parseRedisUrl(url), ca, retrying);
  redis.on("error", onError);
  return redis;
}

/**
 * Opens a connection for subscribing to one sharded channel. On a cluster it is a connection to the master that has the
 * channel, and to its successor after a failover.
 */
export function openSubscriber(url: string, channel: string, onError: (error: Error) => void, ca?: string): Redis {
  const target = parseRedisUrl(url);
  // Its owner subscribes again after each reconnection, and notices when that is refused.
  const options = { ...retrying, socketTimeout: SILENCE_MS.failing, autoResubscribe: false };
  const redis =
    target.kind === "cluster"
      ? openOwner(openCluster(target, ca, retrying), channel, { ...nodeOptions(target, ca), ...options })
      : new Redis(serverOptions(target, ca, options));
  redis.on("error", onError);
  return redis;
}

const retrying: Options = {
  maxRetriesPerRequest: null,
  socketTimeout: SILENCE_MS.retrying,
  // The command is sent again, to the new master.
  reconnectOnError: (error) => (isDemoted(error) ? 2 : false),
};

/** Returns true for the answer of a server that is no longer the master. */
const isDemoted = (error: Error): boolean => error.message.startsWith("READONLY");

const open = (target: RedisTarget, ca: string | undefined, options: Options): RedisClient =>
  target.kind === "cluster" ? openCluster(target, ca, options) : new Redis(serverOptions(target, ca, options));

function openCluster(target: RedisTarget, ca: string | undefined, options: Options): Cluster {
  const { enableOfflineQueue = true, ...ofNode } = options;
  const cluster = new Cluster([...target.nodes], {
    enableOfflineQueue,
    maxRedirections: enableOfflineQueue ? ATTEMPTS.retrying : ATTEMPTS.failing,
    retryDelayOnFailover: ATTEMPT_MS,
    retryDelayOnClusterDown: ATTEMPT_MS,
    // During a failover, two nodes may each name the other.
    retryDelayOnMoved: ATTEMPT_MS,
    clusterRetryStrategy: retryStrategy,
    // Host names stay, because certificates contain them.
    dnsLookup: (address, callback) => callback(null, address),
    redisOptions: { ...nodeOptions(target, ca), ...ofNode },
  });
  // Log lines show the cause.
  cluster.on("error", (error: Error & { lastNodeError?: Error }) => {
    error.cause ??= error.lastNodeError;
  });
  return cluster;
}

function openOwner(cluster: Cluster, channel: string, options: Options): Redis {
  const redis = new Redis({ ...options, retryStrategy, Connector: createOwnerConnector(cluster, channel) });
  redis.on("end", () => cluster.disconnect());
  return redis;
}

function serverOptions(target: RedisTarget, ca: string | undefined, options: Options): Options {
  const shared = { ...nodeOptions(target, ca), ...options, db: target.db, retryStrategy };
  if (target.kind !== "sentinel") return { ...shared, ...target.nodes[0] };
  const { master: name, sentinelLogin, nodes, tls } = target;
  return {
    ...shared,
    name,
    sentinels: [...nodes],
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: 1_000,
    ...(sentinelLogin.username === undefined ? {} : { sentinelUsername: sentinelLogin.username }),
    ...(sentinelLogin.password === undefined ? {} : { sentinelPassword: sentinelLogin.password }),
    ...(tls ? { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(ca) } : {}),
  };
}

/**
 * Returns what every connection to a server has in common. Users of Redis may not run CLIENT SETINFO, with which ioredis
 * reports its version.
 */
const nodeOptions = ({ login, tls }: RedisTarget, ca: string | undefined): Options => ({
  ...login,
  disableClientInfo: true,
  connectTimeout: 5_000,
  ...(tls ? { tls: tlsOptions(ca) } : {}),
});

const tlsOptions = (ca: string | undefined) => (ca === undefined ? {} : { ca });

/** Returns the delay before the next attempt to connect, milliseconds. */
function retryStrategy(times: number): number {
  return Math.min(times * 50, 1_000);
}
