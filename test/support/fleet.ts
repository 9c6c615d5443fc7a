import type { Address } from "viem";
import { newKey } from "../../ops/local/networks-document.ts";
import { freePort } from "../../ops/local/ports.ts";
import { seedAccount } from "../../ops/local/seed.ts";
import { newSolanaKey } from "../../ops/local/solana-client.ts";
import { type Shop, watchAnswers } from "../../ops/local/wallet.ts";
import { keysOf, type NetworksOptions, networksFileFor, type TestChain } from "./chain.ts";
import { checkAnswer } from "./contract.ts";
import { createDatabase } from "./database.ts";
import { testDataKeys } from "./deps.ts";
import { type SpawnedProcess, spawnProcess } from "./process.ts";
import { type RedisPlace, redisPrefix } from "./redis.ts";

// Whatever a test asks of a fleet, its answers are held to the published contract.
watchAnswers(checkAnswer);

export type FleetOptions = NetworksOptions & {
  /** Its first EVM chain; none when `solana` is all it serves. */
  chain?: TestChain;
  apis?: number;
  workers?: number;
  /** A database of the shared server when unset; a private Postgres's for chaos tests. */
  databaseUrl?: string;
  redis?: RedisPlace;
  /** Buyers reach the first api where it listens; for tests with a browser. */
  ownUrl?: boolean;
  /** Further environment of every process. */
  env?: Record<string, string>;
};

export type Fleet = {
  /** The first api. */
  baseUrl: string;
  /** A merchant of live mode at the first api, for the moves of ops/local/wallet.ts; and one of test mode. */
  shop: Shop;
  testShop: Shop;
  /** The merchant's own account, on every EVM chain; and its owner on Solana. */
  destination: Address;
  solanaDestination: string;
  apis: SpawnedProcess[];
  workers: SpawnedProcess[];
  databaseUrl: string;
  redis: RedisPlace;
  addApi(env?: Record<string, string>): Promise<SpawnedProcess>;
  addWorker(env?: Record<string, string>): Promise<SpawnedProcess>;
};

/** Real api and worker processes on a database, a Redis prefix and chains of this file's own. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const databaseUrl = options.databaseUrl ?? (await createDatabase());
  const redis = options.redis ?? redisPrefix();
  const port = options.ownUrl ? await freePort() : undefined;
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    NETWORKS_FILE: await networksFileFor(options.chain, options),
    PUBLIC_URL: `http://127.0.0.1:${port ?? 8_080}`,
    DATA_KEYS: testDataKeys,
    ALLOW_PRIVATE_ADDRESSES: "true",
    RATE_LIMIT_PER_ADDRESS: "0",
    RATE_LIMIT_PER_KEY: "0",
    LOG_LEVEL: "info",
    ...options.env,
  };
  // As in a real deployment: who faces the internet holds no key.
  const keys = keysOf(options.chain, options);
  const apis: SpawnedProcess[] = [];
  const workers: SpawnedProcess[] = [];
  const add = async (
    role: "api" | "worker",
    to: SpawnedProcess[],
    more: Record<string, string>,
    place: { port?: number } = {},
  ) => {
    // Where nobody can reach the api, nobody looks at its pages.
    const blind = options.ownUrl ? {} : { PUBLIC_URL: "" };
    const own = { ...env, ...(role === "worker" ? { ...keys, ...blind } : {}), ...more };
    const started = await spawnProcess({ role, env: own, ...place });
    to.push(started);
    return started;
  };
  await Promise.all([
    ...Array.from({ length: options.apis ?? 1 }, (_, index) =>
      add("api", apis, {}, index === 0 && port ? { port } : {}),
    ),
    ...Array.from({ length: options.workers ?? 2 }, () => add("worker", workers, {})),
  ]);
  const addApi = (more: Record<string, string> = {}) => add("api", apis, more);
  const addWorker = (more: Record<string, string> = {}) => add("worker", workers, more);
  const destination = newKey().address;
  const solanaDestination = newSolanaKey().address;
  const evm = [...(options.chain ? [options.chain] : []), ...(options.also ?? []).map(({ chain }) => chain)];
  const settlements = [
    ...evm.map(({ id, asset }) => ({ asset, destination: `${id}:${destination}` })),
    ...[options.solana?.chain ?? []]
      .flat()
      .map(({ id, asset }) => ({ asset, destination: `${id}:${solanaDestination}` })),
  ];
  const seeded = await seedAccount(databaseUrl, ...settlements);
  const baseUrl = apis[0]?.url ?? "";
  const shop = { baseUrl, caller: seeded.live };
  const testShop = { baseUrl, caller: seeded.test };
  const place = { databaseUrl, redis };
  return { baseUrl, shop, testShop, destination, solanaDestination, apis, workers, ...place, addApi, addWorker };
}
