import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { TestProject } from "vitest/node";
import { migrateDatabase } from "../../db/migrate.ts";
import { startAnvil } from "../../ops/local/anvil.ts";
import { openChain } from "../../ops/local/chain-client.ts";
import { setUpContracts } from "../../ops/local/contracts.ts";
import { startPostgres } from "../../ops/local/postgres.ts";
import { entryPoints } from "../../ops/local/process.ts";
import { startRedis } from "../../ops/local/redis.ts";
import type { Service } from "../../ops/local/service.ts";
import type { Contracts } from "../../ops/local/usdc.ts";
import { execute, namedDatabase } from "./sql.ts";

/** What all test files share; they get it by vitest's `inject("services")`. */
export type SharedServices = {
  /** Where databases are made; nobody works in this one. */
  postgresUrl: string;
  template: string;
  redisUrl: string;
  anvilUrl: string;
  contracts: Contracts;
};

declare module "vitest" {
  interface ProvidedContext {
    services: SharedServices;
  }
}

type Running = { shared: Promise<SharedServices>; users: number; close(): Promise<void> };

/** Two projects ask for the same services, each with its own copy of this module. */
const slot = globalThis as { paymentServiceTestServices?: Running };

/** Brings Postgres, Redis and the base Anvil up before the first project that needs them, down after the last one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  slot.paymentServiceTestServices ??= begin();
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
    if (running.users === 0) await running.close();
  };
}

function begin(): Running {
  const opened: Service[] = [];
  const keep = async (service: Promise<Service>): Promise<Service> => {
    const started = await service;
    opened.push(started);
    return started;
  };
  const template = `pay_template_${randomBytes(4).toString("hex")}`;
  let postgresUrl: string | undefined;

  async function bringUp(): Promise<SharedServices> {
    const forkUrl = process.env.ANVIL_FORK_URL;
    const chain = keep(startAnvil(forkUrl ? { forkUrl } : {}));
    const [postgres, redis, anvil] = await Promise.all([
      keep(startPostgres({ fast: true, maxConnections: 300 })),
      keep(startRedis()),
      chain,
      ...[entryPoints.api, entryPoints.worker].map(compile),
    ]);
    postgresUrl = postgres.url;
    await execute(postgres.url, `create database ${template}`);
    await migrateDatabase(namedDatabase(postgres.url, template));
    const contracts = await setUpContracts(openChain(anvil.url));
    return { postgresUrl: postgres.url, template, redisUrl: redis.url, anvilUrl: anvil.url, contracts };
  }
  async function close(): Promise<void> {
    // On a Postgres that somebody else runs, nothing of ours is left behind.
    if (postgresUrl !== undefined && process.env.DATABASE_URL)
      await execute(postgresUrl, `drop database if exists ${template} with (force)`);
    await Promise.all(opened.splice(0).map((service) => service.close()));
  }
  return { shared: bringUp(), users: 0, close };
}

/**
 * What a process has compiled is kept only when it ends by itself, and tests kill most of theirs: here each is started
 * once without anything that it needs. It says so and ends.
 */
function compile(entryPoint: string): Promise<void> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return new Promise((resolve) => {
    execFile(process.execPath, [entryPoint], { env: { PATH, NODE_COMPILE_CACHE } }, () => resolve());
  });
}
