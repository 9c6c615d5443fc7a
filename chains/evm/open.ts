import { decodeFunctionResult, encodeFunctionData, getAddress, type Hex, hexToNumber } from "viem";
import type { Metrics } from "../../ops/metrics.ts";
import type { EvmAsset, EvmNetwork, KeySource } from "../../ops/networks.ts";
import { parseAssetId } from "../caip.ts";
import { ChainFault } from "../faults.ts";
import { tokenAbi } from "./abi.ts";
import { domainSeparator, type TokenDomain } from "./eip3009.ts";
import { simulateCalls } from "./multicall.ts";
import { openRpc, type Rpc } from "./rpc.ts";
import { createLocalSigner, type Signer } from "./signer.ts";

/** A token as we use it: its networks file entry, its address in lower case, its EIP-712 domain and separator. */
export type EvmToken = EvmAsset & { token: Hex; tokenDomain: TokenDomain; separator: Hex };

/** One EVM network, opened. Addresses are in lower case. */
export type EvmChain = {
  chain: string;
  chainId: number;
  network: EvmNetwork;
  rpc: Rpc;
  multicall: Hex;
  treasury: Hex;
  /** By CAIP-19, in lower case. */
  tokens: ReadonlyMap<string, EvmToken>;
};

/** The keys of a network; only worker processes hold them. */
export type EvmKeys = { treasury: Signer; lanes: readonly Signer[] };

/** Opens a network without asking it anything yet. */
export function openEvmChain(network: EvmNetwork, metrics: Metrics): EvmChain {
  const chainId = Number(network.chain.slice("eip155:".length));
  const tokens = network.assets.map((entry): [string, EvmToken] => {
    const token = (parseAssetId(entry.asset)?.token ?? "") as Hex;
    const tokenDomain = { ...entry.domain, chainId, verifyingContract: getAddress(token) };
    return [entry.asset, { ...entry, token, tokenDomain, separator: domainSeparator(tokenDomain) }];
  });
  return {
    chain: network.chain,
    chainId,
    network,
    rpc: openRpc(network, metrics),
    multicall: network.multicall.toLowerCase() as Hex,
    treasury: network.treasury.address.toLowerCase() as Hex,
    tokens: new Map(tokens),
  };
}

/** Fetches the keys the networks file points at. Throws ConfigError (a place without a key) or ChainFault `wrong_key`. */
export function openEvmKeys(network: EvmNetwork, readKey: (source: KeySource) => Hex): EvmKeys {
  const open = ({ address, key }: { address: string; key: KeySource }) => createLocalSigner(address, readKey(key));
  return { treasury: open(network.treasury), lanes: network.lanes.map(open) };
}

/**
 * Compares what the networks file says with the chain: chain id, multicall, each token's domain separator and decimals.
 * Throws ChainFault `wrong_chain` or `wrong_contract`, which must stop the process: signatures asked for with a wrong
 * domain, or amounts with wrong decimals, would be worthless or worse.
 */
export async function checkEvmChain(chain: EvmChain): Promise<void> {
  for (const token of chain.tokens.values()) {
    const calls = (["DOMAIN_SEPARATOR", "decimals"] as const).map((functionName) => ({
      target: token.token,
      data: encodeFunctionData({ abi: tokenAbi, functionName }),
    }));
    const [separator, decimals] = await simulateCalls(chain.rpc, chain, calls);
    if (!separator?.ok || separator.data !== token.separator)
      throw new ChainFault("wrong_contract", {
        detail: `the domain of ${token.asset} (name, version) is not the token's own`,
      });
    if (!decimals?.ok || decimals.data.length !== 66 || hexToNumber(decimals.data) !== token.decimals)
      throw new ChainFault("wrong_contract", { detail: `${token.asset} does not have ${token.decimals} decimals` });
  }
}

/** Balances in minor units, in the order asked; one eth_call. A token that does not answer counts as 0. */
export async function readBalances(
  chain: EvmChain,
  wanted: readonly { token: Hex; account: Hex }[],
): Promise<bigint[]> {
  const calls = wanted.map(({ token, account }) => ({
    target: token,
    data: encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [account] }),
  }));
  const outcomes = await simulateCalls(chain.rpc, chain, calls);
  return outcomes.map((outcome) =>
    outcome.ok && outcome.data.length === 66
      ? decodeFunctionResult({ abi: tokenAbi, functionName: "balanceOf", data: outcome.data })
      : 0n,
  );
}
