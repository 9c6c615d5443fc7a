import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type Child, startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { startRedis } from "../../local/redis.ts";
import { findRedis } from "../../local/redis-binary.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import type { Service } from "../../local/service.ts";
import { waitFor } from "./wait-for.ts";

const MASTER_NAME = "pay";
const SENTINELS = 3;

export type MonitoredRedis = {
  url: string;
  /** The master at the start, and its replica. */
  master: Service;
  replica: Service;
  close(): Promise<void>;
};

/** Starts a master with a replica, and three sentinels that make the replica the master a second after its death. */
export async function startMonitoredRedis(): Promise<MonitoredRedis> {
  const master = await startRedis({ own: true, settings: ["--repl-diskless-sync-delay", "0"] });
  const { port } = new URL(master.url);
  const replica = await startRedis({ own: true, settings: ["--replicaof", `127.0.0.1 ${port}`] });
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
  return { url: `redis+sentinel://${hosts}?master=${MASTER_NAME}`, master, replica, close };
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
    `sentinel down-after-milliseconds ${MASTER_NAME} 1000`,
    `sentinel failover-timeout ${MASTER_NAME} 5000`,
  ];
  await writeFile(file, `${settings.join("\n")}\n`);
  const child = await startChild(found.program, [file, "--sentinel"], { env: { ...process.env, ...found.env } });
  return { child, port };
}

async function isComplete({ child, port }: Sentinel): Promise<boolean> {
  if (child.isGone()) throw new Error(`a sentinel has ended:\n${child.tail()}`);
  const redis = new Redis(port, "127.0.0.1", { retryStrategy: () => null, lazyConnect: true });
  redis.on("error", () => undefined);
  try {
    const [sentinels, replicas] = await Promise.all([
      redis.call("SENTINEL", "SENTINELS", MASTER_NAME),
      redis.call("SENTINEL", "REPLICAS", MASTER_NAME),
    ]);
    return (sentinels as unknown[]).length === SENTINELS - 1 && (replicas as unknown[]).length === 1;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}
