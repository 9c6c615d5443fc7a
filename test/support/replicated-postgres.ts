import { portOf, startReplica, withPort } from "../../local/postgres-replica.ts";
import type { Service } from "../../local/service.ts";
import { waitUntil } from "../../local/wait-until.ts";
import { addCleanup } from "./cleanups.ts";
import { execute } from "./execute-sql.ts";
import { memoryFolder } from "./memory-folder.ts";
import { startPrivatePostgres } from "./private-services.ts";
import { startTcpRelay } from "./tcp-relay.ts";

export type ReplicatedPostgres = {
  /** The URL that a deployment connects to: the primary, and after the failover the replica. */
  readonly url: string;
  readonly primary: Service;
  /** The replica itself, which is read-only until the failover. */
  readonly replicaUrl: string;
  /** Waits until the replica has replayed everything that the primary has committed by now. */
  catchUp(): Promise<void>;
  /** Makes the primary acknowledge a commit only after the replica has stored it. */
  makeSynchronous(): Promise<void>;
  /** Cuts replication: later commits of the primary are lost in a failover. */
  freeze(): void;
  /** Returns true once the replica is the primary. */
  hasFailedOver(): boolean;
  /** Kills the primary (-9), promotes the replica and points `url` to it. Commits that were not replicated are lost. */
  failOver(): Promise<void>;
};

/** Starts a Postgres with a streaming replica that lags by `lagMs`, and an address that follows the failover. */
export async function startReplicatedPostgres({ lagMs = 0 }: { lagMs?: number } = {}): Promise<ReplicatedPostgres> {
  const primary = await startPrivatePostgres();
  const stream = await startTcpRelay({ target: portOf(primary.url), lagMs });
  const front = await startTcpRelay({ target: portOf(primary.url) });
  const replica = await startReplica(primary.url, { parent: memoryFolder(), streamPort: stream.port });
  addCleanup(replica.close);
  const replicaUrl = replica.url;
  let hasFailedOver = false;
  return {
    url: withPort(primary.url, front.port),
    primary,
    replicaUrl,
    async catchUp() {
      const [at] = await execute(primary.url, "select pg_current_wal_flush_lsn()::text as lsn");
      const reached = `select pg_last_wal_replay_lsn() >= '${at?.["lsn"]}' as reached`;
      const isReached = async () => (await execute(replicaUrl, reached))[0]?.["reached"] === true;
      await waitUntil("the replica has replayed what was committed", isReached, { withinMs: 60_000 + lagMs });
    },
    async makeSynchronous() {
      await execute(primary.url, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()");
      const synchronous = "select from pg_stat_replication where sync_state = 'sync'";
      const isSynchronous = async () => (await execute(primary.url, synchronous)).length === 1;
      await waitUntil("the replica is synchronous", isSynchronous, { withinMs: 60_000 });
    },
    freeze: stream.freeze,
    hasFailedOver: () => hasFailedOver,
    async failOver() {
      hasFailedOver = true;
      // First, so that what lags is lost, however long the primary takes to end.
      stream.freeze();
      await primary.kill("SIGKILL");
      front.to(undefined);
      await execute(replicaUrl, "select pg_promote(true, 60)");
      front.to(portOf(replicaUrl));
    },
  };
}
