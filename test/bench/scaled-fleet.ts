import { join } from "node:path";
import { networksDocument } from "../../local/networks-document.ts";
import type { Say } from "../../local/service.ts";
import { startStack } from "../../local/stack.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { readSettings, withFreePorts } from "../../local/stack-settings.ts";
import { builtService } from "../support/built-service.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import { type MoreChain, startMoreChain } from "./more-chains.ts";

/** The processes of a fleet, its chains, the lanes of each, and how many payments one transaction can hold. */
export type FleetSize = { workers: number; lanes: number; chains: number; perTransaction: number };

/** A running fleet: the file of its stack once for each chain, with that chain as the EVM chain. */
export type ScaledFleet = { chains: StackFile[]; stop: () => Promise<void> };

/** Gas of a payment in a batch, and of the transaction around it, for which a lane reserves room. */
const PAYMENT_GAS = 130_000;
const TRANSACTION_GAS = 60_000;

/** Reads fleets from a list such as `1x8,4x8x4x6`: workers, lanes, chains (1), payments that a transaction holds (115). */
export function readFleetSizes(list: string): FleetSize[] | undefined {
  const sizes = list.split(",").map((one) => one.split("x").map(Number));
  if (!sizes.every((one) => one.length >= 2 && one.length <= 4 && one.every((n) => Number.isInteger(n) && n > 0)))
    return undefined;
  return sizes.map(([workers = 1, lanes = 1, chains = 1, perTransaction = 115]) => ({
    workers,
    lanes,
    chains,
    perTransaction,
  }));
}

/** Starts a stack of one size whose workers reach each chain through a delay, and pays the bench's merchant on all of them. */
export async function startScaledFleet(size: FleetSize, delayMs: number, say: Say): Promise<ScaledFleet> {
  const batchGas = TRANSACTION_GAS + PAYMENT_GAS * size.perTransaction;
  const env = { WORKERS: String(size.workers), LANES: String(size.lanes), LOG_LEVEL: "warn" };
  const settings = await withFreePorts(readSettings({ ...process.env, ...env }));
  const proxy = await startCountingProxy(`http://127.0.0.1:${settings.ANVIL_PORT}`, { delayMs });
  const dir = join(settings.STACK_DIR, "bench-scaling");
  const more: MoreChain[] = [];
  for (let index = 0; index < size.chains - 1; index += 1) {
    say(`starting chain ${index + 2} of ${size.chains}`);
    more.push(await startMoreChain({ index, lanes: size.lanes, buyers: settings.BUYERS, batchGas, delayMs, dir }));
  }
  const closeMore = () => Promise.all(more.map((one) => one.close()));
  const started = startStack({ ...settings, STACK_DIR: dir, EVM_RPC_URL: proxy.url }, say, {
    build: builtService,
    describeMore: ({ network }, solana) => {
      const own = { ...network, change: { ...network.change, batchGas } };
      return networksDocument("local", [own, ...more.map((one) => one.network)], [solana.network]);
    },
  });
  const stack = await started.catch(async (error: unknown) => {
    await closeMore();
    throw error;
  });
  const file = stack.file();
  const stop = async () => {
    await stack.stop();
    await closeMore();
  };
  if (more.length > 0) await addDestinations(file, more);
  return { chains: [file, ...more.map(({ evm }) => ({ ...file, evm }))], stop };
}

async function addDestinations({ baseUrl, live }: StackFile, more: readonly MoreChain[]): Promise<void> {
  const settlements = more.map(({ evm }) => ({ asset: evm.asset, destination: evm.destination }));
  const response = await fetch(`${baseUrl}/v1/merchants/${live.merchantId}/settlements/crypto`, {
    method: "POST",
    headers: { "api-key": live.apiKey, "idempotency-key": "more-chains", "content-type": "application/json" },
    body: JSON.stringify({ settlements }),
  });
  if (!response.ok) throw new Error(`the destinations were refused: ${await response.text()}`);
}
