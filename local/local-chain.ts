import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startAnvil } from "./anvil.ts";
import { guardPool } from "./anvil-pool.ts";
import { type ChainClient, openChain } from "./chain-client.ts";
import type { LocalSolana } from "./local-solana.ts";
import {
  type ChainKeys,
  type KeyPair,
  type NetworkOptions,
  networksDocument,
  newChainKeys,
  newKey,
} from "./networks-document.ts";
import type { Say, Service } from "./service.ts";
import { setUpContracts } from "./set-up-contracts.ts";
import type { StackSettings } from "./stack-settings.ts";
import { type Contracts, fundGas, mintUsdc } from "./usdc.ts";

export type LocalChain = {
  anvil: Service;
  client: ChainClient;
  contracts: Contracts;
  keys: ChainKeys;
  /** CAIP-2 and CAIP-19. */
  id: string;
  asset: string;
  /** Assets with the same code (CAIP-19); empty unless TOKENS is set. */
  otherAssets: string[];
  buyers: KeyPair[];
  /** The merchant's account. */
  destination: `0x${string}`;
  /** Its entry in the networks document. */
  network: NetworkOptions;
};

/** A million dollars for each buyer, so that benchmarks do not run out. */
const buyerUsdc = 1_000_000_000_000n;

/** Gas of one batch: a hundred transfers, and far below Anvil's block limit. */
const BATCH_GAS = 15_000_000;

/** Sets up contracts, funded relayers and funded buyers on Anvil. */
export async function setUpChain(anvil: Service, settings: StackSettings, say: Say): Promise<LocalChain> {
  const client = openChain(anvil.url);
  say(
    process.env["ANVIL_FORK_URL"] ? "using USDC and Multicall3 of the forked network" : "deploying USDC and Multicall3",
  );
  const contracts = await setUpContracts(client, settings.TOKENS);
  const keys = newChainKeys(settings.LANES);
  const buyers = Array.from({ length: settings.BUYERS }, newKey);
  const addresses = buyers.map(({ address }) => address);
  say(`funding ${settings.LANES} relayers and ${settings.BUYERS} buyers`);
  await fundGas(
    client,
    keys.lanes.map(({ address }) => address),
  );
  // Buyers pay no gas; the first two hold some for assets that need it.
  await fundGas(client, addresses.slice(0, 2), "10");
  const tokens = [contracts.token, ...(contracts.otherTokens ?? [])];
  for (const token of tokens) await mintUsdc(client, token, addresses, buyerUsdc);
  const network = describeChain(client, contracts, keys, anvil.url, settings);
  // Set last, because the steps above would take minutes with a block every few seconds.
  if (settings.ANVIL_BLOCK_TIME !== undefined) {
    await client.setAutomine(false);
    await client.setIntervalMining({ interval: settings.ANVIL_BLOCK_TIME });
  }
  const id = `eip155:${await client.getChainId()}`;
  const [asset = "", ...otherAssets] = tokens.map((token) => `${id}/erc20:${token.toLowerCase()}`);
  const destination = newKey().address;
  return { anvil, client, contracts, keys, id, asset, otherAssets, buyers, destination, network };
}

function describeChain(
  chain: ChainClient,
  contracts: Contracts,
  keys: ChainKeys,
  url: string,
  { ANVIL_BLOCK_TIME, EVM_RPC_URL, EVM_SECOND_RPC_URL }: StackSettings,
): NetworkOptions {
  const blockMs = (ANVIL_BLOCK_TIME ?? 1) * 1_000;
  // A proxy passes no WebSockets.
  const wsUrl = EVM_RPC_URL === undefined ? url.replace(/^http/, "ws") : undefined;
  const rpcUrls = [EVM_RPC_URL ?? url, ...(EVM_SECOND_RPC_URL === undefined ? [] : [EVM_SECOND_RPC_URL])];
  return { chain, contracts, keys, rpcUrls, wsUrl, blockMs, change: { batchGas: BATCH_GAS } };
}

/** Writes the networks file of the stack into a folder, with further members of the document. Returns its path. */
export async function writeNetworks(
  chain: LocalChain,
  solana: LocalSolana,
  { dir, members = {} }: { dir: string; members?: Record<string, unknown> | undefined },
): Promise<string> {
  const document = { ...(await networksDocument("local", [chain.network], [solana.network])), ...members };
  await mkdir(dir, { recursive: true });
  const file = join(dir, "networks.json");
  await writeFile(file, `${JSON.stringify(document, null, 2)}\n`);
  return file;
}

/** Starts Anvil on the port of the settings, as a fork when ANVIL_FORK_URL is set, and guards its pool. */
export async function startStackAnvil(
  { ANVIL_PORT, ANVIL_MANY_BLOCKS: manyBlocks }: StackSettings,
  say: Say,
): Promise<Service> {
  const forkUrl = process.env["ANVIL_FORK_URL"];
  const anvil = await startAnvil({ port: ANVIL_PORT, manyBlocks, say, ...(forkUrl ? { forkUrl } : {}) });
  const endGuard = guardPool(anvil.url);
  return {
    ...anvil,
    close: () => {
      endGuard();
      return anvil.close();
    },
  };
}
