import { execFile } from "node:child_process";
import { chown, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { copyData } from "../../local/postgres-backup.ts";
import type { Service } from "../../local/service.ts";
import { addCleanup } from "../support/cleanups.ts";
import { execute } from "../support/execute-sql.ts";
import type { ReplicatedPostgres } from "../support/replicated-postgres.ts";
import type { Fault } from "./fault-scheduler.ts";
import type { LostCommits } from "./response-history.ts";
import type { Random } from "./seeded-random.ts";

const run = promisify(execFile);
/** How far the replica lags when the primary dies, milliseconds. */
const behindMs = 2_000;

/** Records a period of lost commits before any caller can notice it; the fault sets its end when the database answers again. */
export type BeginLostCommits = (from: number) => LostCommits;

/** Returns the fault that kills the primary and promotes a replica without the commits of the last two seconds. */
export function failoverFault(postgres: ReplicatedPostgres, begin: BeginLostCommits): Fault {
  const failOver = async () => {
    await postgres.catchUp();
    const from = performance.now();
    postgres.freeze();
    await pause(behindMs);
    const lost = begin(from);
    await postgres.failOver();
    lost.to = performance.now();
  };
  return { name: "a failover to a replica that is two seconds behind", run: failOver };
}

/** Returns the fault that kills the primary and promotes a synchronous replica, which has every commit. */
export function losslessFailoverFault(postgres: ReplicatedPostgres): Fault {
  const failOver = async () => {
    await postgres.makeSynchronous();
    await postgres.failOver();
  };
  return { name: "a failover to a synchronous replica", run: failOver };
}

/** Returns the fault that restores a backup of some seconds ago under load. `alone` excludes other database faults. */
export function restoreFault(
  postgres: Service,
  args: { random: Random; alone: <T>(work: () => Promise<T>) => Promise<T>; begin: BeginLostCommits },
): Fault {
  const { random, alone, begin } = args;
  const restore = async () => {
    const from = performance.now();
    const backup = await alone(async () => {
      const [row] = await execute(postgres.url, "select current_setting('data_directory') as folder");
      const folder = String(row?.["folder"]);
      const copy = `${folder}.backup`;
      await copyData(postgres.url, copy);
      // The WAL holds the writes during the copy; the end of the backup has closed its last segment.
      await run("cp", ["-a", join(folder, "pg_wal"), copy]);
      // When the run is started as root, Postgres runs as another user.
      const { uid, gid } = await stat(folder);
      await chown(join(copy, "backup_label"), uid, gid);
      return { folder, copy, old: `${folder}.old` };
    });
    addCleanup(() => rm(backup.old, { recursive: true, force: true }));
    await pause(random.between(4_000, 8_000));
    await alone(async () => {
      await postgres.kill("SIGQUIT");
      await rename(backup.folder, backup.old);
      await rename(backup.copy, backup.folder);
      const lost = begin(from);
      await postgres.start();
      lost.to = performance.now();
    });
  };
  return { name: "a restore to some seconds ago", run: restore };
}
