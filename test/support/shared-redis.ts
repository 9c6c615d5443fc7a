import { startRedis } from "../../local/redis.ts";
import { givenService, type Service } from "../../local/service.ts";
import { startRedisCluster } from "./redis-cluster.ts";
import { startMonitoredRedis } from "./redis-sentinel.ts";

/**
 * Starts the Redis that test files share: one server, or what REDIS_KIND names, `cluster` (three masters) or `sentinel` (a
 * master, a replica and three sentinels).
 */
export async function startSharedRedis(): Promise<Service> {
  const kind = process.env["REDIS_KIND"] || "server";
  if (kind === "server") return startRedis();
  if (kind !== "cluster" && kind !== "sentinel") throw new Error("REDIS_KIND is none of server, cluster, sentinel");
  const { url, close } = await (kind === "cluster" ? startRedisCluster({ replicas: false }) : startMonitoredRedis());
  return { ...givenService(url, "REDIS_KIND"), close };
}
