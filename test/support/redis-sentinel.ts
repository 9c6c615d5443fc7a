import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type Child, startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { startRedis } from "../../local/redis.ts";
import { findRedis } from "../../local/redis-binary.ts";
import { onEachRedisNode } from "../../local/redis-nodes.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import type { Service } from "../../local/service.ts";
import { asReplica, createReplicationUsers, readUsers, usersPassword } from "./production-users.ts";
import { waitFor } from "./wait-for.ts";

const MASTER_NAME = "pay";
const SENTINELS = 3;

export type MonitoredRedis = {
  url: string;
  /** The master at the start, and its replica. */
  master: Service;
  replica: Service;
  /** Lets the sentinels switch to the replica, as before maintenance. */
  switchMaster(): Promise<void>;
  close(): Promise<void>;
};

/** Starts a master with a replica, and three sentinels that make the replica the master five seconds after its death. */
export async function startMonitoredRedis(): Promise<MonitoredRedis> {
  const master = await startRedis({ own: true, settings: ["--repl-diskless-sync-delay", "0", ...asReplica] });
  const { port } = new URL(master.url);
  const replica = await startRedis({ own: true, settings: asReplica });
  for (const { url } of [master, replica]) await onEachRedisNode(url, createReplicationUsers);
  await onEachRedisNode(replica.url, (node) => node.replicaof("127.0.0.1", port));
  const folder = await makeScratch("sentinels");
  const sentinels: Sentinel[] = [];
  const close = async () => {
    await Promise.all(sentinels.map(({ child }) => child.end("SIGTERM")));
    await Promise.all([master.close(), replica.close()]);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    sentinels.push(...(await Promise.all(Array.from({ length: SENTINELS }, () => startSentinel(folder, port)))));
    const know = { within: 20_000, what: "the sentinels know each other and the replica" };
    await waitFor(async () => (await Promise.all(sentinels.map(isComplete))).every(Boolean), know);
  } catch (error) {
    await close();
    throw error;
  }
  const hosts = sentinels.map((one) => `127.0.0.1:${one.port}`).join(",");
  const switchMaster = async () => {
    const [first] = sentinels;
    // A sentinel refuses while it has not heard of the replica for some seconds.
    const begin = () => first && ask(first, (redis) => redis.call("SENTINEL", "FAILOVER", MASTER_NAME));
    await waitFor(begin, { within: 20_000, what: "a sentinel begins the failover" });
  };
  const login = `sentinel_username=pay_client&sentinel_password=${usersPassword}`;
  return { url: `redis+sentinel://${hosts}?master=${MASTER_NAME}&${login}`, master, replica, switchMaster, close };
}

type Sentinel = { child: Child; port: number };

async function startSentinel(folder: string, masterPort: string): Promise<Sentinel> {
  const found = await findRedis(undefined);
  if (found === undefined) throw new Error("redis-server was not found");
  const port = await freePort();
  const file = join(folder, `${port}.conf`);
  const settings = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 5000`,
    `sentinel failover-timeout ${MASTER_NAME} 20000`,
    `sentinel auth-user ${MASTER_NAME} pay_sentinel`,
    `sentinel auth-pass ${MASTER_NAME} ${usersPassword}`,
    "sentinel sentinel-user pay_peer",
    `sentinel sentinel-pass ${usersPassword}`,
    ...(await readUsers("sentinel-users.acl")),
    `user owner on >${usersPassword} ~* &* +@all`,
  ];
  await writeFile(file, `${settings.join("\n")}\n`);
  const child = await startChild(found.program, [file, "--sentinel"], { env: { ...process.env, ...found.env } });
  return { child, port };
}

async function isComplete(sentinel: Sentinel): Promise<boolean> {
  if (sentinel.child.isGone()) throw new Error(`a sentinel has ended:\n${sentinel.child.tail()}`);
  const found = await ask(sentinel, (redis) =>
    Promise.all(["SENTINELS", "REPLICAS"].map((what) => redis.call("SENTINEL", what, MASTER_NAME))),
  ).catch(() => [[], []]);
  return found.map((list) => (list as unknown[]).length).join() === `${SENTINELS - 1},1`;
}

async function ask<T>({ port }: Sentinel, command: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(port, "127.0.0.1", {
    username: "owner",
    password: usersPassword,
    retryStrategy: () => null,
    lazyConnect: true,
  });
  redis.on("error", () => undefined);
  try {
    return await command(redis);
  } finally {
    redis.disconnect();
  }
}
