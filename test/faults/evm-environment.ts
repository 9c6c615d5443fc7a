import { startAnvil } from "../../local/anvil.ts";
import { type ChainClient, openChain } from "../../local/chain-client.ts";
import { type ChainKeys, type NetworkOptions, newChainKeys, newKey } from "../../local/networks-document.ts";
import { setUpContracts } from "../../local/set-up-contracts.ts";
import { type Contracts, fundGas } from "../../local/usdc.ts";
import { addCleanup } from "../support/cleanups.ts";
import { type Miner, makeMiner } from "./block-miner.ts";
import { scanChain } from "./evm-scan.ts";
import { deployTokens, type EvmTokens } from "./evm-tokens.ts";
import { type Endpoint, evmCluster, startFaultyEndpoint } from "./faulty-endpoint.ts";
import type { Evidence } from "./payment-invariants.ts";
import type { SeedFaults } from "./seed-faults.ts";

/** An Anvil and two faulty endpoints in front of it. */
export type EvmEnvironment = {
  url: string;
  /** `eip155:31337` */
  id: string;
  client: ChainClient;
  contracts: Contracts;
  tokens: EvmTokens;
  keys: ChainKeys;
  /** Both forward to the same chain; the service knows them as two endpoints. */
  endpoints: readonly Endpoint[];
  blockMs: number;
  /** Its entry of the networks document. */
  network: NetworkOptions;
  settlements: { asset: string; destination: string }[];
  miner: Miner;
};

const blockMs = 500;
/** The finality depth in blocks; reorgs of the run are less deep. */
export const finalityBlocks = 6;
/** The most that a transaction of ours may offer, wei per gas. */
const feeCeiling = 200_000_000_000n;

export async function startEvmEnvironment({ logLimits }: Pick<SeedFaults, "logLimits">): Promise<EvmEnvironment> {
  const anvil = await startAnvil();
  addCleanup(() => anvil.close());
  const client = openChain(anvil.url);
  const contracts = await setUpContracts(client);
  // The last lane serves only contract wallets.
  const keys = newChainKeys(3);
  await fundGas(
    client,
    keys.lanes.map(({ address }) => address),
  );
  const start = () => startFaultyEndpoint({ target: anvil.url, cluster: evmCluster });
  const endpoints = await Promise.all([start(), start()]);
  for (const [index, endpoint] of endpoints.entries()) endpoint.limitLogs(logLimits[index]);
  const id = `eip155:${await client.getChainId()}`;
  const tokens = await deployTokens({ client, id, contracts, keys });
  const change = {
    finality: { blocks: finalityBlocks },
    rpcTimeoutMs: 2_000,
    fees: { maxFeePerGas: String(feeCeiling), priorityFeePerGas: "1000000000" },
    permit2: tokens.permit2,
    screening: { oracle: tokens.oracle },
    assets: Object.values(tokens.entries),
    // A high limit: wallets that burn gas must not delay the honest wallets of a run for an hour.
    walletGasPerHour: 1_000_000_000,
  };
  const destination = `${id}:${newKey().address}`;
  return {
    url: anvil.url,
    id,
    client,
    contracts,
    tokens,
    keys,
    endpoints,
    blockMs,
    network: { chain: client, contracts, keys, blockMs, rpcUrls: endpoints.map(({ url }) => url), change },
    settlements: Object.values(tokens.asset).map((asset) => ({ asset, destination })),
    miner: makeMiner(client, blockMs),
  };
}

/** Returns the evidence from the chain at the end of the run, starting at block `since`. */
export async function collectEvmEvidence(
  { url, tokens, keys }: EvmEnvironment,
  since: number,
): Promise<Evidence["evm"]> {
  const treasury = keys.treasury.address.toLowerCase();
  const accounts = keys.lanes.map(({ address }) => address);
  const { collector, disburser } = tokens;
  const of = { tokens: Object.values(tokens.address), collector, disburser, treasury, accounts };
  const scan = await scanChain({ url, since, ...of });
  return { scan, treasury, feeCeiling };
}
