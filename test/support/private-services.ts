import { startPostgres } from "../../local/postgres.ts";
import { startRedis } from "../../local/redis.ts";
import type { Service } from "../../local/service.ts";
import { addCleanup } from "./cleanups.ts";
import { memoryFolder } from "./memory-folder.ts";

/**
 * Starts a private Redis with an append-only file. A test may flush, stop or kill it and restart it on the same port.
 */
export async function startPrivateRedis(): Promise<Service> {
  const redis = await startRedis({ own: true, appendOnly: true });
  addCleanup(() => redis.close());
  return redis;
}

/** Starts a private Postgres that keeps its commits. A test may stop or kill it and restart it on the same port. */
export async function startPrivatePostgres(): Promise<Service> {
  const postgres = await startPostgres({ own: true, dir: memoryFolder() });
  addCleanup(() => postgres.close());
  return postgres;
}
