import { getAddress, type Hex } from "viem";
import type { Metrics } from "../../runtime/metrics.ts";
import type { EvmAsset, EvmNetwork } from "../../runtime/networks/read-networks.ts";
import { parseAssetId } from "../caip.ts";
import { collectorAddress } from "./collector-contract.ts";
import { disburserAddress } from "./disburser-contract.ts";
import { domainSeparator, type TokenDomain } from "./eip3009.ts";
import type { Endpoints, Rpc } from "./evm-rpc.ts";
import { createHeadWakes, type HeadWakes } from "./head-wakes.ts";
import { lowerCaseHex } from "./hex.ts";
import { openEndpoints } from "./open-endpoints.ts";

/**
 * A token: its entry of the networks file and its address in lower case. `tokenDomain` and `separator` are set if payers
 * sign under the token's own EIP-712 domain.
 */
export type EvmToken = EvmAsset & { token: Hex; tokenDomain: TokenDomain | undefined; separator: Hex | undefined };

/** An opened EVM network. Addresses are in lower case. */
export type EvmChain = {
  namespace: "eip155";
  chain: string;
  chainId: number;
  network: EvmNetwork;
  rpc: Rpc;
  readFromOneEndpoint: Endpoints["readFromOneEndpoint"];
  sendToOneEndpoint: Endpoints["sendToOneEndpoint"];
  endpoints: Endpoints["endpoints"];
  listEndpointsInOrder: Endpoints["listInOrder"];
  /** Checks that every endpoint serves this chain. Throws ChainError `wrong_chain`. */
  checkEndpoints: () => Promise<void>;
  compareHeights: Endpoints["compareHeights"];
  listEndpointStatuses: Endpoints["listStatuses"];
  heads: HeadWakes;
  multicall: Hex;
  permit2: Hex;
  /** The treasury's Collector, whether an asset needs it or not. */
  collector: Hex;
  /** The treasury's Disburser, which makes payouts of tokens without EIP-3009. */
  disburser: Hex;
  treasury: Hex;
  /** Our accounts that are no payer's. A lane may pay. */
  ours: ReadonlySet<string>;
  /** By CAIP-19 id, in lower case. */
  tokens: ReadonlyMap<string, EvmToken>;
};

/** Opens a network without sending a request. */
export function openEvmChain(network: EvmNetwork, metrics: Metrics): EvmChain {
  const chainId = Number(network.chain.slice("eip155:".length));
  const permit2 = lowerCaseHex(network.permit2);
  const { check, listInOrder, listStatuses, ...calls } = openEndpoints(network, metrics);
  // A series that begins with its first count would show no increase.
  for (const { name: endpoint } of network.rpc) metrics.priceDisagreements.inc({ chain: network.chain, endpoint }, 0);
  metrics.pricesUnconfirmed.inc({ chain: network.chain }, 0);
  return {
    namespace: "eip155",
    chain: network.chain,
    chainId,
    network,
    ...calls,
    listEndpointsInOrder: listInOrder,
    checkEndpoints: check,
    listEndpointStatuses: listStatuses,
    heads: createHeadWakes(network, metrics),
    multicall: lowerCaseHex(network.multicall),
    permit2,
    ...accountsOf(permit2, network.treasury.address),
    tokens: new Map(network.assets.map((entry) => [entry.asset, openToken(entry, chainId)])),
  };
}

/** Returns a treasury and its contracts, as members of a chain. */
export function accountsOf(
  permit2: Hex,
  address: string,
): Pick<EvmChain, "treasury" | "collector" | "disburser" | "ours"> {
  const treasury = lowerCaseHex(address);
  const contracts = { collector: collectorAddress({ permit2, treasury }), disburser: disburserAddress(treasury) };
  return { treasury, ...contracts, ours: new Set([treasury]) };
}

function openToken(entry: EvmAsset, chainId: number): EvmToken {
  const token = lowerCaseHex(parseAssetId(entry.asset)?.token ?? "0x");
  const domain = domainOf(entry);
  const tokenDomain = domain && { ...domain, chainId, verifyingContract: getAddress(token) };
  return { ...entry, token, tokenDomain, separator: tokenDomain && domainSeparator(tokenDomain) };
}

function domainOf(entry: EvmAsset): { name: string; version: string } | undefined {
  if (entry.kind === "eip3009") return entry.domain;
  return entry.kind === "permit2" && entry.allowance.by === "permit" ? entry.allowance.domain : undefined;
}

/** Returns the token that a row names. Throws if the networks file lacks it. */
export function getEvmToken(chain: EvmChain, asset: string): EvmToken {
  const token = chain.tokens.get(asset);
  if (!token) throw new Error(`${asset} is used in the database but missing from the networks file`);
  return token;
}
