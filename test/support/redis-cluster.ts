import { Redis } from "ioredis";
import { freePort } from "../../local/free-ports.ts";
import { startRedis } from "../../local/redis.ts";
import { onEachRedisNode } from "../../local/redis-nodes.ts";
import type { Service } from "../../local/service.ts";
import { asReplica, createReplicationUsers } from "./production-users.ts";
import { waitFor } from "./wait-for.ts";

const SLOTS = 16_384;
const MASTERS = 3;
/** Returns the first slot of a master. */
const firstSlot = (index: number) => Math.ceil((SLOTS * index) / MASTERS);
/** How long a master may be silent before its replica takes over, milliseconds. */
const NODE_TIMEOUT_MS = 5_000;

export type RedisCluster = {
  url: string;
  servers: readonly Service[];
  /** Returns the master that has a key at the start, and its replica. Both may be killed. */
  ownersOf(key: string): Promise<{ master: Service; replica: Service | undefined }>;
  close(): Promise<void>;
};

type Member = { service: Service; redis: Redis; port: number; bus: number };

/** Starts a cluster of three masters with a replica each, or without replicas. */
export async function startRedisCluster({ replicas }: { replicas: boolean }): Promise<RedisCluster> {
  const members = await Promise.all(Array.from({ length: replicas ? 2 * MASTERS : MASTERS }, startMember));
  const close = async () => {
    await Promise.all(members.map(({ service }) => service.close()));
  };
  try {
    await join(members);
  } catch (error) {
    await close();
    throw error;
  } finally {
    for (const { redis } of members) redis.disconnect();
  }
  const url = `redis+cluster://${members.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  const ownersOf: RedisCluster["ownersOf"] = async (key) => {
    const [slot = 0] = await onEachRedisNode(members[0]?.service.url ?? "", (node) => node.cluster("KEYSLOT", key));
    const index = Array.from({ length: MASTERS }, (_, at) => firstSlot(at)).findLastIndex((from) => from <= slot);
    const master = members[index]?.service;
    if (!master) throw new Error("no master has the slot");
    return { master, replica: members[MASTERS + index]?.service };
  };
  return { url, servers: members.map(({ service }) => service), ownersOf, close };
}

async function startMember(): Promise<Member> {
  const bus = await freePort();
  const settings = Object.entries({
    "cluster-enabled": "yes",
    "cluster-port": String(bus),
    "cluster-node-timeout": String(NODE_TIMEOUT_MS),
    // A replica that has just begun to follow may take over too.
    "cluster-replica-validity-factor": "0",
    "cluster-allow-pubsubshard-when-down": "no",
    "repl-diskless-sync-delay": "0",
  }).flatMap(([name, value]) => [`--${name}`, value]);
  const service = await startRedis({ own: true, settings: [...settings, ...asReplica] });
  const { port } = new URL(service.url);
  const redis = new Redis(service.url);
  redis.on("error", () => undefined);
  await createReplicationUsers(redis);
  return { service, redis, port: Number(port), bus };
}

async function join(members: readonly Member[]): Promise<void> {
  const [masters, replicas] = [members.slice(0, MASTERS), members.slice(MASTERS)];
  await Promise.all(
    masters.map(async ({ redis }, index) => {
      await redis.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
      await redis.call("CLUSTER", "ADDSLOTSRANGE", firstSlot(index), firstSlot(index + 1) - 1);
    }),
  );
  // Each pair meets, so that no member waits for the others' gossip.
  for (const [index, { redis }] of members.entries())
    for (const { port, bus } of members.slice(index + 1)) await redis.call("CLUSTER", "MEET", "127.0.0.1", port, bus);
  const isComplete = async ({ redis }: Member) => {
    const info = String(await redis.cluster("INFO"));
    const known = Number(/cluster_known_nodes:(\d+)/.exec(info)?.[1]);
    return info.includes("cluster_state:ok") && known === members.length;
  };
  const all = async (test: (one: Member) => Promise<boolean>) => (await Promise.all(members.map(test))).every(Boolean);
  await waitFor(() => all(isComplete), { within: 20_000, what: "the nodes of the cluster know each other" });
  await Promise.all(
    replicas.map(async ({ redis }, index) => {
      const id = String(await masters[index]?.redis.cluster("MYID"));
      await redis.cluster("REPLICATE", id);
      const isLinked = async () => (await redis.info("replication")).includes("master_link_status:up");
      await waitFor(isLinked, { within: 20_000, what: "the replica has its data" });
    }),
  );
  const isKnown = async ({ redis }: Member) => {
    const ranges = (await redis.cluster("SLOTS")) as unknown[][];
    return ranges.length === MASTERS && ranges.every((range) => range.length === 2 + members.length / MASTERS);
  };
  await waitFor(() => all(isKnown), { within: 20_000, what: "every node knows the replicas" });
}
