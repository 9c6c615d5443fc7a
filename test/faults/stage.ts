import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { migrateDatabase } from "../../db/migrate.ts";
import { startAnvil } from "../../ops/local/anvil.ts";
import { type ChainClient, openChain } from "../../ops/local/chain-client.ts";
import { setUpContracts } from "../../ops/local/contracts.ts";
import { type ChainKeys, networksDocument, newChainKeys, newKey } from "../../ops/local/networks-document.ts";
import { freePort } from "../../ops/local/ports.ts";
import type { ProcessOptions } from "../../ops/local/process.ts";
import { type Seeded, seedAccount } from "../../ops/local/seed.ts";
import type { Say, Service } from "../../ops/local/service.ts";
import { type Supervisor, supervise } from "../../ops/local/supervisor.ts";
import { type Contracts, fundGas } from "../../ops/local/usdc.ts";
import { atEnd } from "../support/at-end.ts";
import { startPrivatePostgres, startPrivateRedis } from "../support/private-services.ts";
import { type Endpoint, startEndpoint } from "./endpoint.ts";
import { type Miner, startMiner } from "./miner.ts";

/** Everything one run works on, and breaks. */
export type Stage = {
  postgres: Service;
  redis: Service;
  chain: { url: string; id: string; client: ChainClient; contracts: Contracts; keys: ChainKeys };
  /** Both before the same chain; the service knows them as two endpoints. */
  endpoints: readonly Endpoint[];
  /** Starts an api or a worker again that has died. */
  supervisor: Supervisor;
  /** Where the apis answer. */
  baseUrls: readonly string[];
  seeded: Seeded;
  blockMs: number;
  startMiner(): Promise<Miner>;
};

const blockMs = 500;
/** Reorgs of the run are less deep than this. */
export const finalityBlocks = 6;
/** No transaction of ours may offer more than this per gas, wei. */
export const feeCeiling = 200_000_000_000n;
const apis = 2;

/**
 * Brings a private Postgres, Redis and Anvil up, two endpoints before the Anvil, apis and workers. Closed by `endAll`.
 * The processes' logs are left in `dir`.
 */
export async function bringUp(args: { dir: string; workers: number; say: Say }): Promise<Stage> {
  const dir = resolve(args.dir);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  args.say("starting Postgres, Redis and Anvil");
  const [postgres, redis, anvil] = await Promise.all([startPrivatePostgres(), startPrivateRedis(), startAnvil()]);
  atEnd(() => anvil.close());
  const client = openChain(anvil.url);
  const contracts = await setUpContracts(client);
  const keys = newChainKeys(2);
  await fundGas(
    client,
    keys.lanes.map(({ address }) => address),
  );
  const endpoints = await Promise.all([startEndpoint({ target: anvil.url }), startEndpoint({ target: anvil.url })]);
  const networksFile = join(dir, "networks.json");
  const rpcUrls = endpoints.map(({ url }) => url);
  const change = {
    finality: { blocks: finalityBlocks },
    rpcTimeoutMs: 2_000,
    fees: { maxFeePerGas: String(feeCeiling), priorityFeePerGas: "1000000000" },
  };
  const document = await networksDocument("faults", [{ chain: client, contracts, keys, blockMs, rpcUrls, change }]);
  await writeFile(networksFile, JSON.stringify(document));
  await migrateDatabase(postgres.url);
  const id = `eip155:${await client.getChainId()}`;
  const asset = `${id}/erc20:${contracts.token.toLowerCase()}`;
  const seeded = await seedAccount(postgres.url, { asset, destination: `${id}:${newKey().address}` });

  args.say(`starting ${apis} apis and ${args.workers} workers`);
  const processes = await describeProcesses({ ...args, dir, postgres, redis, networksFile, keys });
  const supervisor = await supervise({ processes, onChange: () => undefined, onDeath: () => undefined });
  atEnd(() => supervisor.stop(5_000));
  return {
    ...{ postgres, redis, endpoints, supervisor, seeded, blockMs },
    chain: { url: anvil.url, id, client, contracts, keys },
    baseUrls: processes.flatMap(({ role, port }) => (role === "api" ? [`http://127.0.0.1:${port}`] : [])),
    startMiner: () => startMiner(client, blockMs),
  };
}

type Parts = {
  dir: string;
  workers: number;
  postgres: Service;
  redis: Service;
  networksFile: string;
  keys: ChainKeys;
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
      env: { ...common, ...(role === "worker" ? keys.env : {}) },
      onLine: (line) => void stream.write(`${line}\n`),
    };
  };
  const names = (role: string, count: number) => Array.from({ length: count }, (_, index) => `${role}-${index}`);
  return Promise.all([
    ...names("api", apis).map((name) => describe("api", name)),
    ...names("worker", workers).map((name) => describe("worker", name)),
  ]);
}
