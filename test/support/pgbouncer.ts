import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { startChild } from "../../local/child-process.ts";
import { findProgram, programFrom } from "../../local/find-program.ts";
import { freePort } from "../../local/free-ports.ts";
import { makeScratch, unprivilegedUser } from "../../local/scratch-folder.ts";
import { addCleanup } from "./cleanups.ts";
import { execute } from "./execute-sql.ts";
import { waitFor } from "./wait-for.ts";

const run = promisify(execFile);

/** Returns the program of PgBouncer: PGBOUNCER, or Debian's package where it is installed. */
export const findPgBouncer = (): string | undefined =>
  programFrom("PGBOUNCER") ?? findProgram("pgbouncer", ["/usr/sbin"]);

/**
 * Starts PgBouncer in transaction mode, as docs/operations/postgres.md configures it, with fewer connections than its clients
 * have. `url` is the database's address through it; `passesPrepared` is false before version 1.21.
 */
export async function startPgBouncer(databaseUrl: string): Promise<{ url: string; passesPrepared: boolean }> {
  const program = findPgBouncer();
  if (program === undefined) throw new Error("PgBouncer was not found: install pgbouncer, or set PGBOUNCER");
  const { stdout } = await run(program, ["--version"]);
  const [, minor = "0"] = /PgBouncer 1\.(\d+)/.exec(stdout) ?? [];
  const passesPrepared = Number(minor) >= 21;
  const { username, password, hostname, port } = new URL(databaseUrl);
  const runner = await unprivilegedUser();
  const folder = await makeScratch("pgbouncer", runner ? { runner } : {});
  const listenPort = await freePort();
  const config = [
    "[databases]",
    `* = host=${hostname} port=${port}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${listenPort}`,
    "unix_socket_dir =",
    "auth_type = scram-sha-256",
    `auth_file = ${join(folder, "users.txt")}`,
    `auth_user = ${username}`,
    "pool_mode = transaction",
    "default_pool_size = 3",
    "ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout",
    ...(passesPrepared ? ["max_prepared_statements = 400"] : []),
  ];
  await writeFile(join(folder, "pgbouncer.ini"), `${config.join("\n")}\n`, { mode: 0o644 });
  await writeFile(join(folder, "users.txt"), `"${username}" "${password}"\n`, { mode: 0o644 });
  const child = await startChild(program, [join(folder, "pgbouncer.ini")], { ...runner, cwd: folder });
  addCleanup(() => child.end("SIGINT", 5_000));
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${listenPort}`;
  const answers = async () => (await execute(url.href, "select 1")).length === 1;
  await waitFor(answers, { within: 10_000, what: "PgBouncer answers" }).catch((cause) => {
    throw new Error(`PgBouncer did not start:\n${child.tail()}`, { cause });
  });
  return { url: url.href, passesPrepared };
}
