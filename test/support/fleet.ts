import type { Address } from "viem";
import { type Shop, watchAnswers } from "../../local/buyer-client.ts";
import { freePort } from "../../local/free-ports.ts";
import { newKey } from "../../local/networks-document.ts";
import { seedAccount } from "../../local/seed-account.ts";
import { newSolanaKey } from "../../local/solana-client.ts";
import { addTestCleanup } from "./add-test-cleanup.ts";
import { keysOf, type NetworksOptions, networksFileFor, type TestChain } from "./evm-chain.ts";
import { checkAnswer } from "./published-contract.ts";
import { type RedisNamespace, redisPrefix } from "./redis-prefix.ts";
import { type SpawnedProcess, spawnProcess } from "./spawn-process.ts";
import { createDatabase } from "./test-database.ts";
import { testKeys } from "./test-deps.ts";

// Every response that a test receives from a fleet is checked against the published contract.
watchAnswers(checkAnswer);

export type FleetOptions = NetworksOptions & {
  /** Its first EVM chain; unset if it serves only `solana`. */
  chain?: TestChain;
  apis?: number;
  workers?: number;
  /** Default: a new database on the shared server. Chaos tests pass one on a private Postgres. */
  databaseUrl?: string;
  redis?: RedisNamespace;
  /** Sets PUBLIC_URL to the first api's own address, for tests with a browser. */
  ownUrl?: boolean;
  /** Additional environment variables of every process. */
  env?: Record<string, string>;
  /** Additional environment variables of the processes of a role. */
  envOf?: Partial<Record<"api" | "worker", Record<string, string>>>;
};

export type Fleet = {
  /** The first api. */
  baseUrl: string;
  /** A live and a test merchant at the first api, for the functions of local/buyer-client.ts. */
  shop: Shop;
  testShop: Shop;
  /** The live merchant's settlement address on every EVM chain, and its owner account on Solana. */
  destination: Address;
  solanaDestination: string;
  apis: SpawnedProcess[];
  workers: SpawnedProcess[];
  databaseUrl: string;
  redis: RedisNamespace;
  /** `build` is the folder of another release's build. */
  addApi(env?: Record<string, string>, build?: string): Promise<SpawnedProcess>;
  addWorker(env?: Record<string, string>, build?: string): Promise<SpawnedProcess>;
};

/** Starts real api and worker processes on their own database, Redis prefix and chains. They end with the test or the file. */
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
    ...testKeys,
    ALLOW_PRIVATE_ADDRESSES: "true",
    RATE_LIMIT_PER_ADDRESS: "0",
    RATE_LIMIT_PER_KEY: "0",
    LOG_LEVEL: "info",
    SIGNER: "embedded",
    ...options.env,
  };
  // As in a real deployment, only workers hold keys.
  const keys = keysOf(options.chain, options);
  const apis: SpawnedProcess[] = [];
  const workers: SpawnedProcess[] = [];
  // The fleet of a test would take processor time from the next tests of the file.
  addTestCleanup(() => Promise.all([...apis, ...workers].map((one) => one.kill("SIGKILL"))));
  const add = async (
    role: "api" | "worker",
    to: SpawnedProcess[],
    more: Record<string, string>,
    place: { port?: number; build?: string } = {},
  ) => {
    // Without a reachable PUBLIC_URL, workers do not check the published pages.
    const withoutPages = options.ownUrl ? {} : { PUBLIC_URL: "" };
    const own = {
      ...env,
      ...(role === "worker" ? { ...keys, ...withoutPages } : {}),
      ...options.envOf?.[role],
      ...more,
    };
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
  const ofBuild = (build?: string) => (build === undefined ? {} : { build });
  const addApi = (more: Record<string, string> = {}, build?: string) => add("api", apis, more, ofBuild(build));
  const addWorker = (more: Record<string, string> = {}, build?: string) => add("worker", workers, more, ofBuild(build));
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
