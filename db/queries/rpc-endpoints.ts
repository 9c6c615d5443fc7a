import { type Insertable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";

/** Replaces what a worker has reported about endpoints, and deletes reports that were made before `forgetBefore`. */
export async function writeEndpointReports(
  db: Db,
  { reports, forgetBefore }: { reports: readonly Insertable<Tables["rpc_endpoint"]>[]; forgetBefore: Date },
): Promise<void> {
  await db.deleteFrom("rpc_endpoint").where("reported_at", "<", forgetBefore).execute();
  if (reports.length === 0) return;
  await db
    .insertInto("rpc_endpoint")
    .values([...reports])
    .onConflict((conflict) =>
      conflict.columns(["chain", "name", "worker"]).doUpdateSet(({ ref }) => ({
        reported_at: ref("excluded.reported_at"),
        answered_at: ref("excluded.answered_at"),
        failed_at: ref("excluded.failed_at"),
        error: ref("excluded.error"),
        calls: ref("excluded.calls"),
        failures: ref("excluded.failures"),
        height: ref("excluded.height"),
      })),
    )
    .execute();
}

/** Deletes what a worker has reported about endpoints. */
export async function deleteEndpointReports(db: Db, worker: string): Promise<void> {
  await db.deleteFrom("rpc_endpoint").where("worker", "=", worker).execute();
}

/** An RPC endpoint, as the workers that have reported since a time see it. */
export type EndpointReport = {
  chain: string;
  name: string;
  workers: number;
  /** Workers whose last call it has answered. */
  reached_by: number;
  answered_at: Date | null;
  failed_at: Date | null;
  /** The code of the newest failure. */
  error: string | null;
  calls: number;
  failures: number;
  height: number | null;
  /** Blocks below the highest endpoint of its chain. */
  behind: number | null;
};

/** Returns the endpoints of the networks file that workers have reported since a time, by chain and name. */
export async function listEndpointReports(db: Db, since: Date): Promise<EndpointReport[]> {
  const { rows } = await sql<EndpointReport>`
    select chain, name, count(*)::int as workers,
      count(*) filter (where answered_at >= failed_at or (failed_at is null and answered_at is not null))::int as reached_by,
      max(answered_at) as answered_at, max(failed_at) as failed_at,
      (array_agg(error order by failed_at desc nulls last))[1] as error,
      sum(calls)::int8 as calls, sum(failures)::int8 as failures, max(height) as height,
      max(max(height)) over (partition by chain) - max(height) as behind
    from rpc_endpoint where reported_at >= ${since} group by chain, name order by chain, name`.execute(db);
  return rows;
}
