import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { copyData } from "../../local/postgres-backup.ts";
import { findPostgres } from "../../local/postgres-binaries.ts";
import { makeScratch, unprivilegedUser } from "../../local/scratch-folder.ts";
import type { Service } from "../../local/service.ts";
import { waitUntil } from "../../local/wait-until.ts";
import { addCleanup } from "./cleanups.ts";
import { execute } from "./execute-sql.ts";
import { memoryFolder } from "./memory-folder.ts";
import { startPrivatePostgres } from "./private-services.ts";
import { startTcpRelay } from "./tcp-relay.ts";

const run = promisify(execFile);

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
  const replicaUrl = await startReplica(primary.url, stream.port);
  let hasFailedOver = false;
  return {
    url: withPort(primary.url, front.port),
    primary,
    replicaUrl,
    async catchUp() {
      const [at] = await execute(primary.url, "select pg_current_wal_flush_lsn()::text as lsn");
      const reached = `select pg_last_wal_replay_lsn() >= '${at?.["lsn"]}' as reached`;
      const isReached = async () => (await execute(replicaUrl, reached))[0]?.["reached"] === true;
      await waitUntil("the replica has replayed what was committed", isReached, { withinMs: 20_000 + lagMs });
    },
    async makeSynchronous() {
      await execute(primary.url, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()");
      const synchronous = "select from pg_stat_replication where sync_state = 'sync'";
      const isSynchronous = async () => (await execute(primary.url, synchronous)).length === 1;
      await waitUntil("the replica is synchronous", isSynchronous, { withinMs: 20_000 });
    },
    freeze: stream.freeze,
    hasFailedOver: () => hasFailedOver,
    async failOver() {
      hasFailedOver = true;
      await primary.kill("SIGKILL");
      stream.freeze();
      front.to(undefined);
      await execute(replicaUrl, "select pg_promote(true, 60)");
      front.to(portOf(replicaUrl));
    },
  };
}

/** Starts a standby on a copy of the primary's data, which streams from it through `streamPort`. Returns its URL. */
async function startReplica(primaryUrl: string, streamPort: number): Promise<string> {
  const runner = await unprivilegedUser();
  const binaries = await findPostgres(runner);
  if (!binaries) throw new Error("a replica needs Postgres's own programs: install them, or set POSTGRES_BIN_DIR");
  const parent = memoryFolder();
  const folder = await makeScratch("replica", { ...(parent && { parent }), ...(runner && { runner }) });
  const data = join(folder, "data");
  await copyData(primaryUrl, data);
  await writeFile(join(data, "standby.signal"), "");
  if (runner) await run("chown", ["-R", `${runner.uid}:${runner.gid}`, data]);
  const url = withPort(primaryUrl, await freePort());
  const { password } = new URL(primaryUrl);
  const from = `host=127.0.0.1 port=${streamPort} user=postgres password=${password}`;
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "timezone=UTC"];
  settings.push(`primary_conninfo=${from}`, "hot_standby=on", "wal_retrieve_retry_interval=200ms");
  const args = ["-D", data, "-p", String(portOf(url)), ...settings.flatMap((setting) => ["-c", setting])];
  const server = await startChild(binaries.postgres, args, { ...runner, cwd: folder, orphanSignal: "SIGQUIT" });
  addCleanup(async () => {
    await server.end("SIGQUIT");
    await rm(folder, { recursive: true, force: true });
    if (binaries.copy !== undefined) await rm(binaries.copy, { recursive: true, force: true });
  });
  await waitUntil("the replica answers", async () => (await execute(url, "select 1")).length === 1, {
    withinMs: 30_000,
  }).catch((cause) => {
    throw new Error(`the replica did not start:\n${server.tail()}`, { cause });
  });
  return url;
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

function withPort(url: string, port: number): string {
  const moved = new URL(url);
  moved.port = String(port);
  return moved.href;
}
