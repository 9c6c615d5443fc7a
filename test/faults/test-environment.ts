import { createWriteStream } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { migrateDatabase } from "../../db/migrate.ts";
import { createLogins, type DatabaseLogins, loginUrl } from "../../local/database-logins.ts";
import { freePort } from "../../local/free-ports.ts";
import { networksDocument } from "../../local/networks-document.ts";
import { createRedisUsers, redisUserUrl } from "../../local/redis-users.ts";
import { type Seeded, seedAccount } from "../../local/seed-account.ts";
import type { Say, Service } from "../../local/service.ts";
import type { ProcessOptions } from "../../local/service-process.ts";
import { type Supervisor, supervise } from "../../local/supervisor.ts";
import { builtService } from "../support/built-service.ts";
import { addCleanup } from "../support/cleanups.ts";
import { execute } from "../support/execute-sql.ts";
import { startPrivatePostgres, startPrivateRedis } from "../support/private-services.ts";
import { type ReplicatedPostgres, startReplicatedPostgres } from "../support/replicated-postgres.ts";
import { testNodeArgs } from "../support/spawn-process.ts";
import { testKeys } from "../support/test-deps.ts";
import { clockEnv } from "./clock-fault.ts";
import { type EvmEnvironment, startEvmEnvironment } from "./evm-environment.ts";
import type { Family } from "./payment-plan.ts";
import { screeningListText } from "./process-faults.ts";
import type { History } from "./response-history.ts";
import type { SeedFaults } from "./seed-faults.ts";
import type { Random } from "./seeded-random.ts";
import { type SolanaEnvironment, startSolanaEnvironment } from "./solana-environment.ts";
import { startWebhookReceiver } from "./webhook-receiver.ts";

/** The services, chains and processes of one run. */
export type TestEnvironment = {
  postgres: Service;
  /** Set when the database of the run can fail over. */
  replicated: ReplicatedPostgres | undefined;
  databaseUrl: string;
  redis: Service;
  evm: EvmEnvironment | undefined;
  solana: SolanaEnvironment | undefined;
  /** Restarts an api or a worker that has died. */
  supervisor: Supervisor;
  /** The URLs of the apis. */
  baseUrls: readonly string[];
  seeded: Seeded;
  /** The networks document and its file. */
  networks: { file: string; document: Record<string, unknown> };
  screeningList: string;
  /** Files that shift the workers' clocks; empty unless the seed has the clock fault. */
  clockFiles: readonly string[];
  /** Assets (CAIP-19) that may be removed from the networks document: their chain has others. */
  removable: readonly string[];
  /** The ids of processes that are stopped for a minute. */
  frozen: Set<number>;
  /** The responses that callers received, and the periods of lost commits. */
  history: History;
  /** Returns how many processes refused to start (exit code 1). */
  refusedToStart(): number;
};

const apis = 2;
/** How long payouts accumulate, milliseconds, where the seed says so. */
const accumulateMs = 3_000;

/**
 * Starts a private Postgres and Redis, chains with two endpoints each, apis and workers. `runCleanups` stops them. The
 * processes' logs stay in `dir`.
 */
export async function startEnvironment(args: {
  dir: string;
  workers: number;
  chains: readonly Family[];
  seedFaults: SeedFaults;
  random: Random;
  say: Say;
}): Promise<TestEnvironment> {
  const dir = resolve(args.dir);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  args.say("starting Postgres, Redis and the chains");
  const { seedFaults } = args;
  const [replicated, redis, evm, solana] = await Promise.all([
    seedFaults.rare.startsWith("failover") ? startReplicatedPostgres() : undefined,
    startPrivateRedis(),
    args.chains.includes("evm") ? startEvmEnvironment(seedFaults) : undefined,
    args.chains.includes("solana") ? startSolanaEnvironment() : undefined,
  ]);
  const postgres = replicated?.primary ?? (await startPrivatePostgres());
  const databaseUrl = replicated?.url ?? postgres.url;
  const networks = {
    file: join(dir, "networks.json"),
    document: await networksDocument("faults", evm ? [evm.network] : [], solana ? [solana.network] : []),
  };
  const screeningList = join(dir, "screening.txt");
  await writeFile(networks.file, JSON.stringify(networks.document));
  await writeFile(screeningList, screeningListText);
  await migrateDatabase(databaseUrl);
  const settlements = [evm, solana].flatMap((chain) => chain?.settlements ?? []);
  const logins = await createLogins(databaseUrl);
  const seeded = await seedAccount(databaseUrl, ...settlements);
  if (seedFaults.accumulates)
    await execute(databaseUrl, `update settlement_destination set accumulation_ms = ${accumulateMs}`);

  args.say(`starting ${apis} apis and ${args.workers} workers`);
  const keys = { ...evm?.keys.env, ...solana?.keys.env };
  const hasClocks = seedFaults.rare === "clocks";
  await startWebhookReceiver({ databaseUrl, random: args.random.branch("webhooks") });
  const processes = await describeProcesses({
    ...args,
    dir,
    databaseUrl,
    logins,
    redis,
    networks,
    screeningList,
    keys,
    hasClocks,
  });
  let refused = 0;
  const onDeath = (_role: string, how: string) => {
    if (how === "exit code 1") refused += 1;
  };
  const supervisor = await supervise({ processes, onChange: () => undefined, onDeath });
  addCleanup(() => supervisor.stop(5_000));
  return {
    postgres,
    replicated,
    databaseUrl,
    redis,
    evm,
    solana,
    supervisor,
    seeded,
    networks,
    screeningList,
    baseUrls: processes.flatMap(({ role, port }) => (role === "api" ? [`http://127.0.0.1:${port}`] : [])),
    clockFiles: processes.flatMap(({ env }) => env["CLOCK_FILE"] ?? []),
    removable: evm ? [evm.tokens.asset.permit2, evm.tokens.asset.push] : [],
    frozen: new Set(),
    history: { statuses: [], creations: [], payments: [], contractViolations: [], lost: [] },
    refusedToStart: () => refused,
  };
}

type Parts = {
  dir: string;
  workers: number;
  databaseUrl: string;
  logins: DatabaseLogins;
  redis: Service;
  networks: TestEnvironment["networks"];
  screeningList: string;
  keys: Record<string, string>;
  hasClocks: boolean;
};

/** Describes the processes. Ports are fixed, so that a restarted process has the same URL. Only workers get the keys. */
async function describeProcesses({
  dir,
  workers,
  databaseUrl,
  logins,
  redis,
  networks,
  screeningList,
  keys,
  hasClocks,
}: Parts) {
  const redisUsers = await createRedisUsers(redis.url, "pay");
  const common = {
    NETWORKS_FILE: networks.file,
    SCREENING_LIST_FILE: screeningList,
    ...testKeys,
    SIGNER: "embedded",
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
      build: builtService,
      nodeArgs: testNodeArgs,
      port: await freePort(),
      metricsPort: await freePort(),
      env: {
        ...common,
        DATABASE_URL: loginUrl(databaseUrl, role, logins),
        REDIS_URL: redisUserUrl(redis.url, role, redisUsers),
        ...(role === "worker" ? keys : {}),
        ...(role === "worker" && hasClocks ? clockEnv(join(dir, `${name}.clock`)) : {}),
      },
      onLine: (line) => void stream.write(`${line}\n`),
    };
  };
  const names = (role: string, count: number) => Array.from({ length: count }, (_, index) => `${role}-${index}`);
  return Promise.all([
    ...names("api", apis).map((name) => describe("api", name)),
    ...names("worker", workers).map((name) => describe("worker", name)),
  ]);
}
