import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PrivateKeyAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { inject } from "vitest";
import { startAnvil } from "../../local/anvil.ts";
import { type ChainClient, openChain } from "../../local/chain-client.ts";
import { type ChainKeys, networksDocument, newChainKeys, newKey } from "../../local/networks-document.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import type { Service } from "../../local/service.ts";
import { describeSolana, type SolanaChainKeys } from "../../local/solana-entry.ts";
import * as usdc from "../../local/usdc.ts";
import { type Networks, parseNetworks } from "../../runtime/networks/read-networks.ts";
import { addCleanup } from "./cleanups.ts";
import type { TestSolana } from "./test-solana.ts";

export type TestChain = {
  url: string;
  /** `eip155:31337` */
  id: string;
  /** CAIP-19 of its USDC, in lower case. */
  asset: string;
  client: ChainClient;
  contracts: usdc.Contracts;
  /** Treasury and lanes; `keys.env` holds the variables the networks document names. */
  keys: ChainKeys;
  anvil: Service;
  /** The newest block when it was started. */
  since: bigint;
};

export type TestChainOptions = {
  lanes?: number;
  /** Sets a chain id other than the local chain's, for a second chain in the same test. */
  chainId?: number;
  /** Seconds between blocks. Default: one block per transaction. */
  blockTime?: number;
  /** Blocks per epoch: `safe` is one epoch below the newest block, `finalized` two. */
  slotsInAnEpoch?: number;
  /** Makes thousands of empty blocks in seconds; see AnvilOptions. */
  manyBlocks?: boolean;
};

/** Starts a private Anvil with the contracts of the shared one, a new treasury and funded lanes. */
export async function startChain({ lanes = 1, ...options }: TestChainOptions = {}): Promise<TestChain> {
  const { anvilStart, contracts } = inject("services");
  const anvil = await startAnvil({ ...anvilStart, ...options });
  addCleanup(() => anvil.close());
  const client = openChain(anvil.url, options.chainId);
  const keys = newChainKeys(lanes, options.chainId === undefined ? "" : `_${options.chainId}`);
  await usdc.fundGas(
    client,
    keys.lanes.map((lane) => lane.address),
  );
  const since = await client.getBlockNumber();
  const id = `eip155:${await client.getChainId()}`;
  const asset = `${id}/erc20:${contracts.token.toLowerCase()}`;
  return { url: anvil.url, id, asset, client, contracts, keys, anvil, since };
}

/** Creates a buyer with `amount` of USDC in the smallest unit (default: 1000 USDC) and no gas. */
export async function fundBuyer(chain: TestChain, amount = 1_000_000_000n): Promise<PrivateKeyAccount> {
  const [buyer] = await fundBuyers(chain, 1, amount);
  if (buyer === undefined) throw new Error("no buyer was made");
  return buyer;
}

/** Creates `count` such buyers. */
export async function fundBuyers(
  chain: TestChain,
  count: number,
  amount = 1_000_000_000n,
): Promise<PrivateKeyAccount[]> {
  const buyers = Array.from({ length: count }, () => privateKeyToAccount(newKey().privateKey));
  await usdc.mintUsdc(
    chain.client,
    chain.contracts.token,
    buyers.map((buyer) => buyer.address),
    amount,
  );
  return buyers;
}

/** Returns an account's USDC in the smallest unit. */
export function usdcBalance(chain: TestChain, of: `0x${string}`): Promise<bigint> {
  return usdc.usdcBalance(chain.client, chain.contracts.token, of);
}

/** Mines `blocks` blocks. */
export function mine(chain: TestChain, blocks = 1): Promise<void> {
  return chain.client.mine({ blocks });
}

/** Sends USDC by the buyer's own transaction, after giving the buyer gas. */
export async function sendUsdc(chain: TestChain, from: PrivateKeyAccount, to: `0x${string}`, amount: bigint) {
  await usdc.fundGas(chain.client, [from.address]);
  return await usdc.transferUsdc(chain.client, chain.contracts.token, from, to, amount);
}

/** Returns the USDC transfers to an account since the start, oldest first. */
export async function transfersTo(chain: TestChain, to: `0x${string}`) {
  return await usdc.listTransfers(chain.client, chain.contracts.token, { to, since: chain.since });
}

export type NetworksOptions = {
  /** RPC URLs that the service uses, such as a fault proxy's. Default: the chain's own URL. */
  rpcUrls?: string[];
  deployment?: string;
  /** Members that override the chain's entry, for example `{ finality: { blocks: 3 } }`. */
  change?: Record<string, unknown>;
  /** Further chains of the deployment, each started with its own `chainId`. */
  also?: readonly (Pick<NetworksOptions, "rpcUrls" | "change"> & { chain: TestChain })[];
  /** A Solana cluster beside or instead of the EVM chains, with the treasury and lanes of `makeSolanaKeys`. */
  solana?: Pick<NetworksOptions, "rpcUrls" | "change"> & { chain: TestSolana; keys: SolanaChainKeys };
};

/** Returns the parsed networks document for this chain. */
export async function networksFor(chain: TestChain, options: NetworksOptions = {}): Promise<Networks> {
  return parseNetworks(await describeNetworks(chain, options));
}

/** Writes the networks document for this chain to a file. Returns its path, for NETWORKS_FILE. */
export async function networksFileFor(chain: TestChain | undefined, options: NetworksOptions = {}): Promise<string> {
  const folder = await makeScratch("networks");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "networks.json");
  await writeFile(file, JSON.stringify(await describeNetworks(chain, options)));
  return file;
}

/** Returns the networks document for this chain, and for those of the options. */
export function describeNetworks(chain: TestChain | undefined, options: NetworksOptions = {}) {
  const { rpcUrls, deployment = "test", change, also = [], solana } = options;
  const all = [...(chain ? [{ chain, rpcUrls, change }] : []), ...also];
  const chains = all.map(({ chain, rpcUrls = [chain.url], change = {} }) => ({
    chain: chain.client,
    contracts: chain.contracts,
    keys: chain.keys,
    rpcUrls,
    change,
  }));
  return networksDocument(deployment, chains, solana ? [describeTestSolana(solana)] : []);
}

function describeTestSolana({ chain, keys, rpcUrls = [chain.url], change = {} }: Required<NetworksOptions>["solana"]) {
  const { id, mint, slotMs } = chain;
  return describeSolana({ id, mints: [mint], keys, rpcUrls, slotMs, change });
}

/** Returns the environment variables that hold the keys of all these chains. */
export function keysOf(chain: TestChain | undefined, { also = [], solana }: NetworksOptions): Record<string, string> {
  const all = [...(chain ? [chain] : []), ...also.map(({ chain }) => chain), ...(solana ? [solana] : [])];
  return Object.assign({}, ...all.map(({ keys }) => keys.env));
}
