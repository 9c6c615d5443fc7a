import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import type { Role as DatabaseRole } from "../db/grants/roles.ts";
import { migrateDatabase } from "../db/migrate.ts";
import type { Credentials } from "../payments/operators/operators.ts";
import { newEncryptionKeys } from "../runtime/encryption.ts";
import { createLogins, dropLogins, loginUrl } from "./database-logins.ts";
import { describeProcesses, drainMs } from "./describe-processes.ts";
import { requireFreePort } from "./free-ports.ts";
import { type LocalChain, setUpChain, startStackAnvil, writeNetworks } from "./local-chain.ts";
import { type LocalSolana, setUpSolana, startStackSolana } from "./local-solana.ts";
import { makeOwnDatabase } from "./own-database.ts";
import { startPostgres } from "./postgres.ts";
import { type Replica, startReplica } from "./postgres-replica.ts";
import { startRedis } from "./redis.ts";
import { createRedisUsers, dropRedisUsers, type RedisRole, redisUserUrl } from "./redis-users.ts";
import { type Seeded, seedAccount } from "./seed-account.ts";
import { seedOperator } from "./seed-operator.ts";
import type { Say, Service } from "./service.ts";
import type { Role } from "./service-process.ts";
import { findRunningStack, removeStackFile, type StackFile, writeStackFile } from "./stack-file.ts";
import { metricsPorts, type StackSettings } from "./stack-settings.ts";
import { type Supervisor, supervise } from "./supervisor.ts";

export type Stack = {
  /** Returns the current content of stack.json. */
  file(): StackFile;
  /** The folder of stack.json, as the settings name it. */
  dir: string;
  /** Restarts the api and the workers, so that they run changed sources. */
  restart(): Promise<void>;
  /**
   * Stops the processes of these roles, and kills those that have not ended in time. They start again when the returned
   * function is called.
   */
  hold(roles: readonly Role[], withinMs?: number): Promise<() => void>;
  postgres: Service;
  /** The replica that the api reads lists from; undefined unless REPLICA is set. */
  replica: Replica | undefined;
  redis: Service;
  chain: LocalChain;
  solana: LocalSolana;
  adminLogin: Credentials;
  /** Stops everything in reverse order, each part within a time limit. Never rejects; safe to call twice. */
  stop(): Promise<void>;
};

type Opened = { name: string; close: () => Promise<unknown> }[];

export type StackOptions = {
  /** Gives up the start when it is aborted. */
  signal?: AbortSignal;
  /** The folder of a build (scripts/build.ts), which is run instead of the sources. */
  build?: string;
  /** Returns further members of the networks document, such as price feeds, when the chains are set up. */
  describeMore?: (chain: LocalChain, solana: LocalSolana) => Promise<Record<string, unknown>>;
  /** Returns further environment variables of the processes of a role. */
  envOf?: (role: Role) => Record<string, string>;
};

/** Starts the whole stack and writes its file. Stops it again when a step fails or the signal is aborted meanwhile. */
export async function startStack(
  settings: StackSettings,
  say: Say,
  { signal, ...more }: StackOptions = {},
): Promise<Stack> {
  const dir = resolve(settings.STACK_DIR);
  const before = await findRunningStack(dir);
  if (before !== undefined)
    throw new Error(
      `a stack already runs in ${settings.STACK_DIR} (process ${before.processes.supervisor}): stop it, or set STACK_DIR and the ports`,
    );
  await checkPorts(settings);
  const opened: Opened = [];
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= closeAll(opened, say);
    return stopping;
  };
  try {
    const sayNext: Say = (line) => {
      // Every step calls this function, so the start can be given up between two steps.
      signal?.throwIfAborted();
      say(line);
    };
    return await startEnvironment({ ...more, settings, dir, say: sayNext, report: say, opened, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

async function checkPorts(settings: StackSettings): Promise<void> {
  await requireFreePort(settings.PORT, "the api", "PORT");
  await requireFreePort(settings.ADMIN_PORT, "bull-board", "ADMIN_PORT");
  await requireFreePort(settings.ANVIL_PORT, "Anvil", "ANVIL_PORT");
  await requireFreePort(settings.SOLANA_PORT, "Solana", "SOLANA_PORT");
  await requireFreePort(settings.SOLANA_PORT + 1, "Solana's WebSockets", "SOLANA_PORT");
  for (const port of metricsPorts(settings)) await requireFreePort(port, "metrics", "METRICS_PORT");
}

type EnvironmentOptions = Pick<StackOptions, "build" | "describeMore" | "envOf"> & {
  settings: StackSettings;
  dir: string;
  say: Say;
  report: Say;
  opened: Opened;
  stop: () => Promise<void>;
};

async function startEnvironment(options: EnvironmentOptions): Promise<Stack> {
  const { settings, build, dir, say, report, opened, stop } = options;
  await mkdir(dir, { recursive: true });
  const keep = async (name: string, starting: Promise<Service>): Promise<Service> => {
    const service = await starting;
    opened.push({ name, close: () => service.close() });
    return service;
  };
  const server = await startPostgres({ dir, say, own: settings.REPLICA });
  const isShared = !settings.REPLICA && Boolean(process.env["DATABASE_URL"]);
  const postgres = await keep("Postgres", isShared ? makeOwnDatabase(server) : Promise.resolve(server));
  const replica = settings.REPLICA ? await startReplica(postgres.url, { parent: dir }) : undefined;
  if (replica) opened.push({ name: "the replica", close: replica.close });
  const redis = await keep("Redis", startRedis({ dir, appendOnly: true, say }));
  const anvil = await keep("Anvil", startStackAnvil(settings, say));
  const solanaService = await keep("Solana", startStackSolana(settings, say));
  const chain = await setUpChain(anvil, settings, say);
  const solana = await setUpSolana(solanaService, settings, say);
  const members = await options.describeMore?.(chain, solana);
  const networksFile = await writeNetworks(chain, solana, { dir: settings.STACK_DIR, members });
  say("migrating the database");
  await migrateDatabase(postgres.url);
  const logins = await createLogins(postgres.url);
  // Another server outlives the stack.
  if (isShared) opened.push({ name: "database logins", close: () => dropLogins(server.url, logins) });
  const urlOf = (role: DatabaseRole) => loginUrl(postgres.url, role, logins);
  // Another stack may use the same Redis when REDIS_URL names it.
  const prefix = process.env["REDIS_URL"] ? `pay-${process.pid}` : "pay";
  const users = await createRedisUsers(redis.url, prefix);
  if (process.env["REDIS_URL"]) opened.push({ name: "Redis users", close: () => dropRedisUsers(redis.url, users) });
  const redisUrlOf = (role: RedisRole) => redisUserUrl(redis.url, role, users);
  say("creating an account, merchants and keys");
  const paidTo = [...[chain.asset, ...chain.otherAssets].map((asset) => ({ ...chain, asset })), solana];
  const settlements = paidTo.map(({ asset, id, destination }) => ({ asset, destination: `${id}:${destination}` }));
  const seeded = await seedAccount(urlOf("admin"), ...settlements);

  // The database is deleted with the stack, so a new key for each run can decrypt everything in it.
  const totpKeys = await newEncryptionKeys("local");
  const adminLogin = await seedOperator(urlOf("admin"), totpKeys.publicKey);
  const keys = { ...chain.keys.env, ...solana.keys.env };
  const described = await describeProcesses({
    settings,
    dir,
    urlOf,
    replicaUrl: replica && loginUrl(replica.url, "api", logins),
    redis: { urlOf: redisUrlOf, prefix },
    networksFile,
    keys,
    totpKeys,
  });
  const { envOf = () => ({}) } = options;
  const processes = described.map((one) => ({ ...one, build, env: { ...one.env, ...envOf(one.role) } }));
  let supervisor: Supervisor | undefined;
  const file = () =>
    stackFile({
      settings,
      services: { postgres, redis, anvil, solana: solanaService },
      chain,
      solana,
      seeded,
      supervisor,
    });
  opened.push({ name: "stack.json", close: () => removeStackFile(dir) });
  say(`starting the signer, the api, ${settings.WORKERS} workers and bull-board`);
  const onDeath = (role: Role, how: string) =>
    report(`a process with the role ${role} ended (${how}) and is restarted`);
  // Several processes may end at once: the file is written for one change after another.
  let writing = Promise.resolve();
  const onChange = () => {
    writing = writing.then(() => (supervisor === undefined ? undefined : writeStackFile(dir, file())));
    return writing;
  };
  supervisor = await supervise({ processes, onChange, onDeath });
  const running = supervisor;
  opened.push({ name: "the processes", close: () => running.stop(drainMs + 2_000) });
  await writeStackFile(dir, file());
  const restart = () => running.restart(["api", "worker", "signer"], drainMs + 2_000);
  const hold: Stack["hold"] = (roles, withinMs = drainMs + 2_000) => running.hold(roles, withinMs);
  return { file, dir: settings.STACK_DIR, chain, solana, adminLogin, restart, hold, postgres, replica, redis, stop };
}

/** Closes everything in reverse order. One that fails to close is reported, and the others are closed all the same. */
async function closeAll(opened: Opened, say: Say): Promise<void> {
  for (let last = opened.pop(); last !== undefined; last = opened.pop()) {
    const { name, close } = last;
    say(`stopping ${name}`);
    await close().catch((error: unknown) =>
      say(`${name} did not stop: ${error instanceof Error ? error.message : error}`),
    );
  }
}

type Facts = {
  settings: StackSettings;
  services: { postgres: Service; redis: Service; anvil: Service; solana: Service };
  chain: LocalChain;
  solana: LocalSolana;
  seeded: Seeded;
  supervisor: Supervisor | undefined;
};

function stackFile({ settings, services, chain, solana, seeded, supervisor }: Facts): StackFile {
  const { postgres, redis, anvil } = services;
  return {
    baseUrl: `http://127.0.0.1:${settings.PORT}`,
    adminUrl: `http://127.0.0.1:${settings.ADMIN_PORT}`,
    metricsUrls: metricsPorts(settings).map((port) => `http://127.0.0.1:${port}/metrics`),
    postgresUrl: postgres.url,
    redisUrl: redis.url,
    ...seeded,
    evm: {
      chain: chain.id,
      rpcUrl: anvil.url,
      asset: chain.asset,
      token: chain.contracts.token,
      treasury: chain.keys.treasury.address,
      relayers: chain.keys.lanes.map(({ address }) => address),
      destination: `${chain.id}:${chain.destination}`,
      buyers: chain.buyers,
    },
    solana: {
      chain: solana.id,
      rpcUrl: services.solana.url,
      asset: solana.asset,
      mint: solana.mint.address,
      treasury: solana.keys.treasury.address,
      destination: `${solana.id}:${solana.destination}`,
      buyers: solana.buyers,
    },
    processes: {
      supervisor: process.pid,
      api: supervisor?.pids("api") ?? [],
      workers: supervisor?.pids("worker") ?? [],
      signer: supervisor?.pids("signer") ?? [],
      postgres: postgres.pid(),
      redis: redis.pid(),
      anvil: anvil.pid(),
      solana: services.solana.pid(),
    },
  };
}
