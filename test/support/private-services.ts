import { startPostgres } from "../../ops/local/postgres.ts";
import { startRedis } from "../../ops/local/redis.ts";
import type { Service } from "../../ops/local/service.ts";
import { atEnd } from "./at-end.ts";

/** A Redis of one's own, with an append-only file: flush, stop, kill and start it again on the same port. */
export async function startPrivateRedis(): Promise<Service> {
  const redis = await startRedis({ own: true, appendOnly: true });
  atEnd(() => redis.close());
  return redis;
}

/** A Postgres of one's own that keeps what it committed: stop, kill and start it again on the same port. */
export async function startPrivatePostgres(): Promise<Service> {
  const postgres = await startPostgres({ own: true });
  atEnd(() => postgres.close());
  return postgres;
}
