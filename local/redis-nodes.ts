import { Redis } from "ioredis";
import { parseRedisUrl, type RedisNode, type RedisTarget } from "../runtime/redis-url.ts";

/**
 * Runs `work` on a connection to each server of a Redis, replicas included, and returns the results in their order. The
 * connections fail at once when a server is unavailable.
 */
export async function onEachRedisNode<T>(url: string, work: (node: Redis) => Promise<T>): Promise<T[]> {
  const target = parseRedisUrl(url);
  const nodes = await listNodes(target);
  return Promise.all(nodes.map((node) => onNode(target, node, work)));
}

/** Returns the servers that serve data, replicas included, as a cluster or the sentinels know them. */
async function listNodes(target: RedisTarget): Promise<readonly RedisNode[]> {
  const [first] = target.nodes;
  if (target.kind === "server" || !first) return target.nodes;
  if (target.kind === "sentinel") return listMonitored(target, first);
  const ranges = await onNode(target, first, (node) => node.cluster("SLOTS"));
  const servers = ranges.flatMap(([, , ...nodes]) => nodes.map(([host, port]) => ({ host, port })));
  return [...new Map(servers.map((one) => [`${one.host}:${one.port}`, one])).values()];
}

async function listMonitored(
  target: Extract<RedisTarget, { kind: "sentinel" }>,
  sentinel: RedisNode,
): Promise<readonly RedisNode[]> {
  return onNode({ ...target, login: target.sentinelLogin, db: 0 }, sentinel, async (node) => {
    const [host = "", port] = (await node.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", target.master)) as string[];
    const replicas = (await node.call("SENTINEL", "REPLICAS", target.master)) as string[][];
    return [{ host, port: Number(port) }, ...replicas.map(([, , , ip = "", , at]) => ({ host: ip, port: Number(at) }))];
  });
}

async function onNode<T>(
  { login, tls, db }: RedisTarget,
  node: RedisNode,
  work: (node: Redis) => Promise<T>,
): Promise<T> {
  const redis = new Redis({
    ...node,
    ...login,
    db,
    ...(tls ? { tls: {} } : {}),
    lazyConnect: true,
    // Clients of sentinels may not run INFO.
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  // The call that fails reports the error.
  redis.on("error", () => undefined);
  try {
    await redis.connect();
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
