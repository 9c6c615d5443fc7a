import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Registry } from "prom-client";
import type { Chain } from "../../chains/chain.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { openChains } from "../../chains/open-chains.ts";
import type { PayoutSigner } from "../../chains/payout-signer.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { createLog } from "../../runtime/log.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import {
  type Networks,
  readKey,
  readSecret,
  readText,
  type SecretSource,
} from "../../runtime/networks/read-networks.ts";
import { workerActor } from "../../signer/audit/entries.ts";
import { recordLimits } from "../../signer/audit/limits-changes.ts";
import { createChainCheck } from "../../signer/check-chain.ts";
import { createSignerClient } from "../../signer/client.ts";
import { createStore } from "../../signer/create-store.ts";
import { openLimits } from "../../signer/limits.ts";
import { recordAssets } from "../../signer/recorded-assets.ts";
import { startServer } from "../../signer/server.ts";
import { createShortPayouts } from "../../signer/short-payouts.ts";
import { addCleanup } from "./cleanups.ts";
import { keysOf, type NetworksOptions, networksFor, type TestChain } from "./evm-chain.ts";
import { type Clock, makeClock } from "./test-deps.ts";

/** Limits that no test reaches by accident, minor units. */
const WIDE = "1000000000000";

/** Returns a limits document for the assets of chains, with what a test changes. */
export function limitsDocument(assets: readonly string[], change: { asset?: object; file?: object } = {}) {
  const limits = { perPayout: WIDE, perMerchantDay: WIDE, newMerchantPerDay: WIDE, perHour: WIDE, ...change.asset };
  return { paused: false, assets: Object.fromEntries(assets.map((asset) => [asset, limits])), ...change.file };
}

/**
 * Starts a signer on a Unix socket, with its own endpoints, keys, store and clock. `signer` is a worker's connection to it.
 */
export async function startTestSigner(chain: TestChain, options: NetworksOptions & { clock?: Clock } = {}) {
  return startSignerFor(await networksFor(chain, options), keysOf(chain, options), options);
}

/** Starts the same signer for any networks; `env` holds the treasury's keys. */
export async function startSignerFor(networks: Networks, env: Record<string, string>, options: { clock?: Clock } = {}) {
  const folder = await makeScratch("signer");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  const log = createLog({ level: "debug", role: "signer" }, { write: (line) => void lines.push(line) });
  const registry = new Registry();
  const metrics = createMetrics(registry, "signer");
  const chains = new Map<string, Chain>();
  const treasuryKeys = new Map<string, PayoutSigner>();
  /** Opens the chains and keys of a networks file, in the place of those that were open. */
  const open = async (file: Networks, keys: Record<string, string>) => {
    const readers = {
      readKey: (source: SecretSource) => readKey(source, keys),
      readSecret: (source: SecretSource) => readSecret(source, keys),
      readText,
    };
    for (const one of openChains(file, metrics).values()) {
      chains.set(one.chain, one);
      treasuryKeys.set(one.chain, await getChainDriver(one.chain).openPayoutSigner(one, readers));
    }
  };
  await open(networks, env);
  const clock = options.clock ?? makeClock();
  const store = createStore(join(folder, "signer.sqlite"), { command: "init", at: clock.now() });
  addCleanup(() => store.close());
  recordAssets(store, chains, clock.now());
  const limitsFile = join(folder, "limits.jsonc");
  const assets = [...chains.values()].flatMap(({ tokens }) => [...tokens.keys()]);
  /** Writes the limits file, as its operator does. A text is written as it is. */
  const setLimits = (change: Parameters<typeof limitsDocument>[1] | string = {}) =>
    writeFile(limitsFile, typeof change === "string" ? change : JSON.stringify(limitsDocument(assets, change)));
  await setLimits();
  const readLimits = openLimits(limitsFile, { log, observe: recordLimits({ store, now: clock.now }) });
  const { deployment } = networks;
  const caller = workerActor("socket");
  const checkChain = createChainCheck({ chains, log, now: clock.now });
  const deps = {
    store,
    chains,
    checkChain,
    deployment,
    treasuryKeys,
    readLimits,
    log,
    metrics,
    shortPayouts: createShortPayouts(clock.now),
    now: clock.now,
    caller,
  };
  const socketPath = join(folder, "signer.sock");
  let server = await startServer(deps, { socketPath });
  const signer = createSignerClient({ socketPath }, { log });
  addCleanup(async () => {
    signer.close();
    await server.close();
  });
  return {
    deps,
    signer,
    store,
    clock,
    socketPath,
    lines,
    registry,
    setLimits,
    /** Goes on with another networks file and its keys, as a restart does. */
    reopen: async (file: Networks, keys: Record<string, string>) => {
      await open(file, keys);
      recordAssets(store, chains, clock.now());
    },
    stop: () => server.close(),
    start: async () => {
      server = await startServer(deps, { socketPath });
    },
    /** Returns the payouts that the signer has authorized. */
    payouts: () => store.prepare("select kind, amount, counted, receiver from payout order by id").all(),
  };
}
