import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { type AnvilOptions, saveState, startAnvil } from "../../local/anvil.ts";
import { openChain } from "../../local/chain-client.ts";
import { createLogins, type DatabaseLogins, dropLogins } from "../../local/database-logins.ts";
import { startPostgres } from "../../local/postgres.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import type { Service } from "../../local/service.ts";
import { setUpContracts } from "../../local/set-up-contracts.ts";
import type { Contracts } from "../../local/usdc.ts";
import { buildService } from "./built-service.ts";
import { execute, namedDatabase } from "./execute-sql.ts";
import { memoryFolder } from "./memory-folder.ts";
import { startSharedRedis } from "./shared-redis.ts";

/** The services that all test files share; a file gets them by vitest's `inject("services")`. */
export type SharedServices = {
  /** The database from which tests create their own; no test uses it itself. */
  postgresUrl: string;
  template: string;
  /** The logins of the roles on that server. */
  logins: DatabaseLogins;
  redisUrl: string;
  /** How a private Anvil begins with the contracts: with the state of the base Anvil, or as a fork of it. */
  anvilStart: Pick<AnvilOptions, "stateFile"> | Pick<AnvilOptions, "forkUrl">;
  contracts: Contracts;
};

declare module "vitest" {
  interface ProvidedContext {
    services: SharedServices;
  }
}

const run = promisify(execFile);

type Running = { shared: Promise<SharedServices>; users: number; close(): Promise<void> };

/** Several vitest projects share the services, but each loads its own copy of this module. */
const slot = globalThis as { paymentServiceTestServices?: Running };

/**
 * Builds the service, compiles the contracts of the tests, and starts Postgres, Redis and the base Anvil, before the first project that
 * needs them. Stops them after the last.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (slot.paymentServiceTestServices === undefined) {
    slot.paymentServiceTestServices = start();
    project.onTestsRerun(buildService);
  }
  const running = slot.paymentServiceTestServices;
  running.users += 1;
  try {
    project.provide("services", await running.shared);
  } catch (error) {
    await running.close();
    throw error;
  }
  return async () => {
    running.users -= 1;
    if (running.users > 0) return;
    delete slot.paymentServiceTestServices;
    await running.close();
  };
}

function start(): Running {
  const opened: Service[] = [];
  const keep = async (service: Promise<Service>): Promise<Service> => {
    const started = await service;
    opened.push(started);
    return started;
  };
  const template = `pay_template_${randomBytes(4).toString("hex")}`;
  let postgresUrl: string | undefined;
  let logins: DatabaseLogins | undefined;
  let folder: string | undefined;

  async function startServices(): Promise<SharedServices> {
    const forkUrl = process.env["ANVIL_FORK_URL"];
    const chain = keep(startAnvil(forkUrl ? { forkUrl } : {}));
    const [postgres, redis, anvil] = await Promise.all([
      keep(startPostgres({ fast: true, dir: memoryFolder(), maxConnections: 300 })),
      keep(startSharedRedis()),
      chain,
    ]);
    postgresUrl = postgres.url;
    await execute(postgres.url, `create database ${template}`);
    await migrateTemplate(namedDatabase(postgres.url, template));
    logins = await createLogins(postgres.url);
    const contracts = await setUpContracts(openChain(anvil.url));
    const anvilStart = await describeStart(anvil);
    return { postgresUrl: postgres.url, template, logins, redisUrl: redis.url, anvilStart, contracts };
  }
  async function describeStart(anvil: Service): Promise<SharedServices["anvilStart"]> {
    // A dump has only what the base Anvil has read of a forked network, and a container cannot read a file of this machine.
    if (process.env["ANVIL_FORK_URL"] || anvil.pid() === undefined) return { forkUrl: anvil.url };
    folder = await makeScratch("anvil");
    const stateFile = join(folder, "state.json");
    await saveState(anvil.url, stateFile);
    return { stateFile };
  }
  async function close(): Promise<void> {
    // An external Postgres outlives this run, so the template and the logins are dropped.
    if (postgresUrl !== undefined && process.env["DATABASE_URL"]) {
      await execute(postgresUrl, `drop database if exists ${template} with (force)`);
      if (logins) await dropLogins(postgresUrl, logins);
    }
    await Promise.all(opened.splice(0).map((service) => service.close()));
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
  const shared = Promise.all([startServices(), buildService(), compileContracts()]).then(([services]) => services);
  return { shared, users: 0, close };
}

/** Migrates in a process of its own, because a process reads the migrations once, and mutations change them. */
async function migrateTemplate(url: string): Promise<void> {
  const script = `import { migrateDatabase } from "${new URL("../../db/migrate.ts", import.meta.url)}";
    await migrateDatabase(process.env.DATABASE_URL);`;
  const env = { ...process.env, DATABASE_URL: url };
  await run(process.execPath, ["--input-type=module", "--eval", script], { env });
}

/** Compiles the contracts of the tests in one process, because each process that compiles loads the compiler first. */
async function compileContracts(): Promise<void> {
  const sources = new URL("./contracts/", import.meta.url);
  const script = `import { compileOnce } from "${new URL("./compiled-contracts.ts", import.meta.url)}";
    for (const name of ${JSON.stringify(await readdir(sources))}) compileOnce(name);`;
  await run(process.execPath, ["--input-type=module", "--eval", script]);
}
