import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { onEachRedisNode } from "../../local/redis-nodes.ts";
import { addCleanup } from "./cleanups.ts";

export type RedisNamespace = { url: string; prefix: string };

/** Returns the shared Redis and a unique prefix, whose keys are removed when the file is over. */
export function redisPrefix(): RedisNamespace {
  const { redisUrl } = inject("services");
  const prefix = `t${randomBytes(5).toString("hex")}`;
  addCleanup(() => removeUnder(redisUrl, prefix));
  return { url: redisUrl, prefix };
}

async function removeUnder(url: string, prefix: string): Promise<void> {
  await onEachRedisNode(url, async (redis) => {
    const [role] = (await redis.role()) as [string];
    if (role !== "master") return;
    for await (const keys of redis.scanStream({ match: `*${prefix}*`, count: 1_000 }) as AsyncIterable<string[]>) {
      // The keys of one command would have to be in one slot of a cluster.
      await Promise.all(keys.map((key) => redis.unlink(key)));
    }
  });
}
