import type { Hex } from "viem";
import type { Sender } from "../../chains/chain-driver.ts";
import { lowerCaseHex } from "../../chains/evm/hex.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Signer } from "../../chains/evm/signers/signer.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { BASE_GAS } from "./multicall-batch.ts";

/** The signers of a chain's lanes: those of the relayers, and the one for contract wallets. */
export type LaneSigners = { relayers: readonly Signer[]; wallets: readonly Signer[] };

/** Returns the signers of a chain's lanes. */
export function listLaneSigners(deps: Pick<TransferDeps, "keys">, chain: EvmChain): LaneSigners {
  const keys = deps.keys.get(chain.chain);
  if (!keys) return { relayers: [], wallets: [] };
  const wallets = keys.lanes.slice(-1);
  const relayers = hasWalletLane(chain) ? keys.lanes.slice(0, -1) : keys.lanes;
  return { relayers, wallets };
}

/** Returns the addresses of the lanes by which a sender sends. */
export function listLaneAddresses(chain: EvmChain, sender: Sender): Hex[] {
  const all = chain.network.lanes.map(({ address }) => lowerCaseHex(address));
  if (sender === "wallet lane") return all.slice(-1);
  return hasWalletLane(chain) ? all.slice(0, -1) : all;
}

/** Returns true when contract wallets have a lane of their own. On a chain with a single lane they share it. */
export function hasWalletLane({ network }: Pick<EvmChain, "network">): boolean {
  return network.lanes.length > 1;
}

/** Returns the address of the lane that sends for contract wallets. */
export function walletLaneOf({ network }: Pick<EvmChain, "network">): Hex {
  return lowerCaseHex(network.lanes.at(-1)?.address ?? "0x");
}

/** Returns the gas limit of a lane's transaction with one transfer. The last of several lanes sends for contract wallets. */
export function singleTransferGas(chain: EvmChain, lane: Hex): bigint {
  const { walletGas, assets } = chain.network;
  const isWalletLane = hasWalletLane(chain) && lane === walletLaneOf(chain);
  return BASE_GAS + BigInt(isWalletLane ? walletGas : Math.max(...assets.map(({ transferGas }) => transferGas)));
}
