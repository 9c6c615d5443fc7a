import { startAnvil } from "../../ops/local/anvil.ts";
import { type ChainClient, openChain } from "../../ops/local/chain-client.ts";
import { setUpContracts } from "../../ops/local/contracts.ts";
import { type ChainKeys, type NetworkOptions, newChainKeys, newKey } from "../../ops/local/networks-document.ts";
import { type Contracts, fundGas } from "../../ops/local/usdc.ts";
import { atEnd } from "../support/at-end.ts";
import { scanChain } from "./chain-scan.ts";
import { type Endpoint, evmCluster, startEndpoint } from "./endpoint.ts";
import type { Evidence } from "./invariants.ts";
import { type Miner, startMiner } from "./miner.ts";

/** An Anvil, and two endpoints before it that can be broken. */
export type EvmStage = {
  url: string;
  /** `eip155:31337` */
  id: string;
  client: ChainClient;
  contracts: Contracts;
  keys: ChainKeys;
  /** Both before the same chain; the service knows them as two endpoints. */
  endpoints: readonly Endpoint[];
  blockMs: number;
  /** Its entry of the networks document. */
  network: NetworkOptions;
  settlement: { asset: string; destination: string };
  startMiner(): Promise<Miner>;
};

const blockMs = 500;
/** Reorgs of the run are less deep than this. */
export const finalityBlocks = 6;
/** No transaction of ours may offer more than this per gas, wei. */
const feeCeiling = 200_000_000_000n;

export async function startEvmStage(): Promise<EvmStage> {
  const anvil = await startAnvil();
  atEnd(() => anvil.close());
  const client = openChain(anvil.url);
  const contracts = await setUpContracts(client);
  const keys = newChainKeys(2);
  await fundGas(
    client,
    keys.lanes.map(({ address }) => address),
  );
  const start = () => startEndpoint({ target: anvil.url, cluster: evmCluster });
  const endpoints = await Promise.all([start(), start()]);
  const change = {
    finality: { blocks: finalityBlocks },
    rpcTimeoutMs: 2_000,
    fees: { maxFeePerGas: String(feeCeiling), priorityFeePerGas: "1000000000" },
  };
  const id = `eip155:${await client.getChainId()}`;
  const asset = `${id}/erc20:${contracts.token.toLowerCase()}`;
  return {
    ...{ url: anvil.url, id, client, contracts, keys, endpoints, blockMs },
    network: { chain: client, contracts, keys, blockMs, rpcUrls: endpoints.map(({ url }) => url), change },
    settlement: { asset, destination: `${id}:${newKey().address}` },
    startMiner: () => startMiner(client, blockMs),
  };
}

/** What the chain says in the end, from a block on. */
export async function gatherEvm({ url, contracts, keys }: EvmStage, since: number): Promise<Evidence["evm"]> {
  const treasury = keys.treasury.address.toLowerCase();
  const accounts = keys.lanes.map(({ address }) => address);
  return { scan: await scanChain({ url, since, tokens: [contracts.token], treasury, accounts }), treasury, feeCeiling };
}
