import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { inject } from "vitest";
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
  const redis = new Redis(url);
  try {
    for await (const keys of redis.scanStream({ match: `*${prefix}*`, count: 1_000 }) as AsyncIterable<string[]>) {
      if (keys.length > 0) await redis.unlink(keys);
    }
  } finally {
    redis.disconnect();
  }
}
