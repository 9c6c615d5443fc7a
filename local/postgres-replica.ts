import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { startChild } from "./child-process.ts";
import { execute } from "./execute-sql.ts";
import { freePort } from "./free-ports.ts";
import { copyData } from "./postgres-backup.ts";
import { findPostgres } from "./postgres-binaries.ts";
import { makeScratch, unprivilegedUser } from "./scratch-folder.ts";
import { waitUntil } from "./wait-until.ts";

const run = promisify(execFile);

/** A streaming replica: its URL, with the database, user and password of the primary's. */
export type Replica = { url: string; close(): Promise<void> };

/**
 * Starts a standby on a copy of the primary's data, which streams from it. The primary has to be Postgres's own programs on
 * this machine.
 * @param options.parent the folder for its data; the system's temporary folder when unset
 * @param options.streamPort where it reaches the primary; the primary's own port when unset
 */
export async function startReplica(
  primaryUrl: string,
  { parent, streamPort = portOf(primaryUrl) }: { parent?: string | undefined; streamPort?: number } = {},
): Promise<Replica> {
  const runner = await unprivilegedUser();
  const binaries = await findPostgres(runner);
  if (!binaries) throw new Error("a replica needs Postgres's own programs: install them, or set POSTGRES_BIN_DIR");
  const folder = await makeScratch("replica", { ...(parent && { parent }), ...(runner && { runner }) });
  const data = join(folder, "data");
  await copyData(primaryUrl, data);
  await writeFile(join(data, "standby.signal"), "");
  if (runner) await run("chown", ["-R", `${runner.uid}:${runner.gid}`, data]);
  const url = withPort(primaryUrl, await freePort());
  const { password } = new URL(primaryUrl);
  const from = `host=127.0.0.1 port=${streamPort} user=postgres password=${password} application_name=replica`;
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "timezone=UTC",
    "jit=off",
    "random_page_cost=1.1",
  ];
  settings.push(`primary_conninfo=${from}`, "hot_standby=on", "wal_retrieve_retry_interval=200ms");
  const args = ["-D", data, "-p", String(portOf(url)), ...settings.flatMap((setting) => ["-c", setting])];
  const server = await startChild(binaries.postgres, args, { ...runner, cwd: folder, orphanSignal: "SIGQUIT" });
  const close = async () => {
    await server.end("SIGQUIT");
    await rm(folder, { recursive: true, force: true });
    if (binaries.copy !== undefined) await rm(binaries.copy, { recursive: true, force: true });
  };
  await waitUntil("the replica answers", async () => (await execute(url, "select 1")).length === 1, {
    withinMs: 90_000,
  }).catch(async (cause) => {
    await close();
    throw new Error(`the replica did not start:\n${server.tail()}`, { cause });
  });
  return { url, close };
}

/** Returns the port of a URL. */
export function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** Returns a URL with another port. */
export function withPort(url: string, port: number): string {
  const moved = new URL(url);
  moved.port = String(port);
  return moved.href;
}
