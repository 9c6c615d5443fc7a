import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { migrateDatabase } from "../../db/migrate.ts";
import { networksDocument } from "../../ops/local/networks-document.ts";
import { freePort } from "../../ops/local/ports.ts";
import type { ProcessOptions } from "../../ops/local/process.ts";
import { type Seeded, seedAccount } from "../../ops/local/seed.ts";
import type { Say, Service } from "../../ops/local/service.ts";
import { type Supervisor, supervise } from "../../ops/local/supervisor.ts";
import { atEnd } from "../support/at-end.ts";
import { startPrivatePostgres, startPrivateRedis } from "../support/private-services.ts";
import { type EvmStage, startEvmStage } from "./evm-stage.ts";
import type { Family } from "./plan.ts";
import { type SolanaStage, startSolanaStage } from "./solana-stage.ts";

/** Everything one run works on, and breaks. */
export type Stage = {
  postgres: Service;
  redis: Service;
  evm: EvmStage | undefined;
  solana: SolanaStage | undefined;
  /** Starts an api or a worker again that has died. */
  supervisor: Supervisor;
  /** Where the apis answer. */
  baseUrls: readonly string[];
  seeded: Seeded;
};

const apis = 2;

/**
 * Brings a private Postgres and Redis up, chains with two endpoints before each, apis and workers. Closed by `endAll`. The
 * processes' logs are left in `dir`.
 */
export async function bringUp(args: {
  dir: string;
  workers: number;
  chains: readonly Family[];
  say: Say;
}): Promise<Stage> {
  const dir = resolve(args.dir);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  args.say("starting Postgres, Redis and the chains");
  const [postgres, redis, evm, solana] = await Promise.all([
    startPrivatePostgres(),
    startPrivateRedis(),
    args.chains.includes("evm") ? startEvmStage() : undefined,
    args.chains.includes("solana") ? startSolanaStage() : undefined,
  ]);
  const networksFile = join(dir, "networks.json");
  const document = await networksDocument("faults", evm ? [evm.network] : [], solana ? [solana.network] : []);
  await writeFile(networksFile, JSON.stringify(document));
  await migrateDatabase(postgres.url);
  const settlements = [evm, solana].flatMap((chain) => chain?.settlement ?? []);
  const seeded = await seedAccount(postgres.url, ...settlements);

  args.say(`starting ${apis} apis and ${args.workers} workers`);
  const keys = { ...evm?.keys.env, ...solana?.keys.env };
  const processes = await describeProcesses({ ...args, dir, postgres, redis, networksFile, keys });
  const supervisor = await supervise({ processes, onChange: () => undefined, onDeath: () => undefined });
  atEnd(() => supervisor.stop(5_000));
  const baseUrls = processes.flatMap(({ role, port }) => (role === "api" ? [`http://127.0.0.1:${port}`] : []));
  return { postgres, redis, evm, solana, supervisor, seeded, baseUrls };
}

type Parts = {
  dir: string;
  workers: number;
  postgres: Service;
  redis: Service;
  networksFile: string;
  keys: Record<string, string>;
};

/** Ports are fixed, so that whoever is started again is found where it was. Only workers get the keys. */
async function describeProcesses({ dir, workers, postgres, redis, networksFile, keys }: Parts) {
  const common = {
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    NETWORKS_FILE: networksFile,
    DATA_KEYS: `faults:${randomBytes(32).toString("base64")}`,
    ALLOW_PRIVATE_ADDRESSES: "true",
    PUBLIC_URL: "https://pay.example.test",
    RATE_LIMIT_PER_ADDRESS: "0",
    RATE_LIMIT_PER_KEY: "0",
    LOG_LEVEL: "info",
  };
  const describe = async (role: "api" | "worker", name: string): Promise<ProcessOptions> => {
    const stream = createWriteStream(join(dir, `${name}.log`), { flags: "a" });
    return {
      role,
      port: await freePort(),
      metricsPort: await freePort(),
      env: { ...common, ...(role === "worker" ? keys : {}) },
      onLine: (line) => void stream.write(`${line}\n`),
    };
  };
  const names = (role: string, count: number) => Array.from({ length: count }, (_, index) => `${role}-${index}`);
  return Promise.all([
    ...names("api", apis).map((name) => describe("api", name)),
    ...names("worker", workers).map((name) => describe("worker", name)),
  ]);
}
