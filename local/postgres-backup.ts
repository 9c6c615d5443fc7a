import { execFile } from "node:child_process";
import { appendFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { execute } from "./execute-sql.ts";
import { makeScratch, unprivilegedUser } from "./scratch-folder.ts";
import type { Service } from "./service.ts";
import { waitUntil } from "./wait-until.ts";

const run = promisify(execFile);

/** Copies a running server's data by the backup functions, because not every distribution has pg_basebackup. */
export async function copyData(url: string, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("select current_setting('data_directory') as folder");
    await client.query("select pg_backup_start('replica', true)");
    // cp fails on files that disappear while it runs. Recovery does not need those.
    await run("cp", ["-a", rows[0].folder, to]).catch(() => undefined);
    const backup = await client.query("select labelfile from pg_backup_stop(false)");
    await rm(join(to, "postmaster.pid"), { force: true });
    await writeFile(join(to, "backup_label"), backup.rows[0].labelfile);
  } finally {
    await client.end();
  }
}

/** A server's data folder, and the folders of its base backup and its WAL archive. */
export type Backup = { data: string; base: string; archive: string };

/**
 * Makes a server archive its WAL from now on, which takes a restart. Returns the folders; the base backup is not taken yet.
 */
export async function archiveWal(postgres: Service): Promise<Backup> {
  const runner = await unprivilegedUser();
  const folder = await makeScratch("archive", runner ? { runner } : {});
  const [row] = await execute(postgres.url, "select current_setting('data_directory') as folder");
  await execute(
    postgres.url,
    "alter system set archive_mode = on",
    `alter system set archive_command = 'test ! -f ${folder}/%f && cp %p ${folder}/%f'`,
  );
  await postgres.stop();
  await postgres.start();
  return { data: String(row?.["folder"]), base: `${folder}.base`, archive: folder };
}

/** Closes the current WAL file, as `archive_timeout` does, and waits until it is in the archive. */
export async function archiveCurrentWal(postgres: Service, { archive }: Backup): Promise<void> {
  const [row] = await execute(postgres.url, "select pg_walfile_name(pg_switch_wal()) as file");
  const file = String(row?.["file"]);
  const isThere = async () => (await readdir(archive)).includes(file);
  await waitUntil(`the archive has ${file}`, isThere, { withinMs: 90_000 });
}

/** Kills a server and deletes its data, as the loss of its disk does. */
export async function destroyData(postgres: Service, { data }: Backup): Promise<void> {
  await postgres.kill("SIGKILL");
  await rm(data, { recursive: true, force: true });
}

/** Starts a server on its base backup, recovered from the archive up to a moment, and waits until it accepts writes. */
export async function restoreToTime(postgres: Service, { data, base, archive }: Backup, moment: Date): Promise<void> {
  await run("cp", ["-a", base, data]);
  await writeFile(join(data, "recovery.signal"), "");
  const settings = {
    restore_command: `cp ${archive}/%f %p`,
    // Postgres refuses the abbreviation Z here.
    recovery_target_time: moment.toISOString().replace("Z", "+00"),
    recovery_target_action: "promote",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  await appendFile(join(data, "postgresql.auto.conf"), lines.join(""));
  const runner = await unprivilegedUser();
  if (runner) await run("chown", ["-R", `${runner.uid}:${runner.gid}`, data]);
  await postgres.start();
  const isPrimary = async () => (await execute(postgres.url, "select where not pg_is_in_recovery()")).length === 1;
  await waitUntil("the restored database accepts writes", isPrimary, { withinMs: 60_000 });
}

/** Deletes a backup. */
export async function removeBackup({ base, archive }: Backup): Promise<void> {
  for (const folder of [base, archive]) await rm(folder, { recursive: true, force: true });
}
