import { randomUUID } from "node:crypto";
import { Registry } from "prom-client";
import { isTransientChainError } from "../../chains/errors.ts";
import type { EvmKeys } from "../../chains/evm/signers/open-evm-keys.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { getEvmChain, openChains } from "../../chains/open-chains.ts";
import type { PayoutSigner } from "../../chains/payout-signer.ts";
import type { SolanaKeys } from "../../chains/solana/open-solana-keys.ts";
import { openDb } from "../../db/open.ts";
import { createAssetUnits } from "../../payments/asset-units.ts";
import type { Enqueue, JobRequest } from "../../queues/enqueue.ts";
import type { PublishPaymentChanges } from "../../queues/payment-changes.ts";
import { createDecrypt, createEncrypt, parseEncryptionKey } from "../../runtime/encryption.ts";
import { createLog } from "../../runtime/log.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import {
  type Networks,
  readKey,
  readSecret,
  readText,
  type SecretSource,
} from "../../runtime/networks/read-networks.ts";
import { createSafeFetch } from "../../runtime/safe-fetch.ts";
import { createEmbeddedSigner } from "../../signer/embedded-signer.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import { type EpochStore, openEpoch } from "../../transfers/database-epoch.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import { createVerifier } from "../../transfers/verifier.ts";
import { addCleanup } from "./cleanups.ts";
import { keysOf, type NetworksOptions, networksFor, type TestChain } from "./evm-chain.ts";
import { createDatabase } from "./test-database.ts";

/** The key pairs of tests, as variables of every process. */
export const testKeys = {
  BUYER_DATA_PUBLIC_KEY: "test:GWlt3/zZsjfQvt4vVkkhxXLGB3++TKw8Fof2axUaw3E=",
  BUYER_DATA_PRIVATE_KEYS: "test:sG8iiMhF6QBFzIfLNK049Oz8roGZ7RQrdYQQa4YHJlQ=",
  WEBHOOK_PUBLIC_KEY: "test:ztXql/axuEunHoO3Q7tNnmwuwjaceBk5Pw7wxOor2W4=",
  WEBHOOK_PRIVATE_KEYS: "test:CDXEBP8Mo3tJW35OlQtEiN55wqcaQndrH6Rik0Oj0Hs=",
  TOTP_PUBLIC_KEY: "test:K5iKB8DFu99Pg2zEaq/+WAgQTVO1n+6D9oCoWh9XQl4=",
  TOTP_PRIVATE_KEYS: "test:KFRq+NiugAD6ksXs2FEHp8Sn8Ag3uYf1Ae2pHmnwYlg=",
};

/** Encrypts and decrypts with the key pairs of tests. */
export function testEncryption() {
  const parse = (text: string) => parseEncryptionKey(text) ?? { id: "", bytes: Buffer.alloc(0) };
  return {
    encryptBuyerData: createEncrypt(parse(testKeys.BUYER_DATA_PUBLIC_KEY)),
    decryptBuyerData: createDecrypt([parse(testKeys.BUYER_DATA_PRIVATE_KEYS)]),
    encryptWebhookSecret: createEncrypt(parse(testKeys.WEBHOOK_PUBLIC_KEY)),
    decryptWebhookSecret: createDecrypt([parse(testKeys.WEBHOOK_PRIVATE_KEYS)]),
    encryptTotpSecret: createEncrypt(parse(testKeys.TOTP_PUBLIC_KEY)),
    decryptTotpSecret: createDecrypt([parse(testKeys.TOTP_PRIVATE_KEYS)]),
  };
}

/** A clock that runs ahead of the machine's clock by as much as a test advances it. */
export type Clock = {
  now: () => Date;
  advance(ms: number): void;
  /**
   * Stops the clock, which then moves only when a test advances it: for a test of what does not happen yet, which a busy
   * machine could be too slow for. Returns a function that lets it run on.
   */
  stop(): () => void;
};

export function makeClock(): Clock {
  let ahead = 0;
  let stoppedAt: number | undefined;
  return {
    now: () => new Date((stoppedAt ?? Date.now()) + ahead),
    advance(ms) {
      ahead += ms;
    },
    stop() {
      const at = Date.now();
      stoppedAt = at;
      return () => {
        stoppedAt = undefined;
        ahead -= Date.now() - at;
      };
    },
  };
}

/** Returns an enqueue function that only records its jobs, for tests whose subject is not the queue. */
export function recordEnqueued(): { enqueue: Enqueue; enqueued: { queue: string; job: JobRequest }[] } {
  const enqueued: { queue: string; job: JobRequest }[] = [];
  const enqueue: Enqueue = async (queue, jobs) => {
    for (const job of jobs) enqueued.push({ queue, job: job as JobRequest });
  };
  return { enqueue, enqueued };
}

/** Returns an in-memory stand-in for the database epoch that Redis stores for a fleet; `forget` is a FLUSHALL. */
export function makeEpochMemory(): EpochStore & { forget(): void } {
  let highest: number | undefined;
  return {
    read: async () => highest,
    async raise(count) {
      highest = Math.max(highest ?? 0, count);
    },
    forget() {
      highest = undefined;
    },
  };
}

export type DepsOptions = NetworksOptions & {
  /** Default: a new database. */
  databaseUrl?: string;
  clock?: Clock;
  /** The database epoch that the fleet stores outside the database. Default: a new memory. */
  memory?: EpochStore;
  /** Default: a signer in this process, which signs everything. */
  signer?: TreasurySigner;
};

/**
 * Assembles a worker process's dependencies in this process: a database, the chain, its keys and a clock. Enqueued jobs
 * and announcements are only recorded.
 */
export async function makeDeps(chain: TestChain, options: DepsOptions = {}) {
  const made = await makeDepsFor(await networksFor(chain, options), keysOf(chain, options), options);
  return { ...made, evm: getEvmChain(made.deps.chains, chain.id) };
}

/** Assembles the same dependencies for any networks; `env` holds their keys. */
export async function makeDepsFor(
  networks: Networks,
  env: Record<string, string>,
  options: Pick<DepsOptions, "databaseUrl" | "clock" | "memory" | "signer"> = {},
) {
  const databaseUrl = options.databaseUrl ?? (await createDatabase());
  const lines: string[] = [];
  const log = createLog({ level: "debug", role: "test" }, { write: (line) => void lines.push(line) });
  const metrics = createMetrics(new Registry(), "worker");
  const db = openDb(databaseUrl, { max: 10 });
  addCleanup(() => db.destroy());
  const chains = openChains(networks, metrics);
  const keys = new Map<string, EvmKeys>();
  const readers = {
    readKey: (source: SecretSource) => readKey(source, env),
    readSecret: (source: SecretSource) => readSecret(source, env),
    readText,
  };
  const solanaKeys = new Map<string, SolanaKeys>();
  const treasuryKeys = new Map<string, PayoutSigner>();
  for (const chain of chains.values()) {
    await getTransferDriver(chain).openKeys({ keys, solanaKeys }, readers);
    treasuryKeys.set(chain.chain, await getChainDriver(chain.chain).openPayoutSigner(chain, readers));
  }
  const signer = options.signer ?? createEmbeddedSigner({ treasuryKeys, chains, deployment: networks.deployment, log });
  const clock = options.clock ?? makeClock();
  const { enqueue, enqueued } = recordEnqueued();
  const announced: string[] = [];
  const publishPaymentChanges: PublishPaymentChanges = async (ids) => void announced.push(...ids);
  const owner = randomUUID();
  const screened = new Set<string>();
  const brokenList = { on: false };
  const screeningList = (_chain: string, accounts: readonly string[]) => {
    if (brokenList.on) throw new Error("the list is broken");
    return new Set(accounts).intersection(screened);
  };
  const verifier = createVerifier({ db, chains, screeningList, metrics, now: clock.now });
  const { now } = clock;
  const withoutRequestContext = <T>(work: () => T) => work();
  const checkPages = async () => undefined;
  const startedChains = new Set(chains.keys());
  const jobDeps = { verifier, withoutRequestContext, isTransient: isTransientChainError, startedChains, checkPages };
  const recorded = {
    enqueue,
    publishPaymentChanges,
    log,
    metrics,
    ...testEncryption(),
    safeFetch: createSafeFetch({ allowPrivate: true }),
  };
  const { deployment } = networks;
  const deps = {
    db,
    chains,
    networks,
    assetUnits: createAssetUnits(db),
    deployment,
    keys,
    solanaKeys,
    signer,
    owner,
    screeningList,
    ...recorded,
    ...jobDeps,
    now,
    startedAt: now(),
    epoch: openEpoch({ db, memory: options.memory ?? makeEpochMemory(), log }),
  };
  return {
    deps,
    screened,
    brokenList,
    db,
    databaseUrl,
    clock,
    enqueued,
    announced,
    lines,
  };
}

export type TestDeps = Awaited<ReturnType<typeof makeDeps>>;
