import type { Hex } from "viem";
import type { EvmChain } from "../chains/evm/open.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import type { TransferDeps } from "./deps.ts";

/** Whose transactions a chain's lanes sign: the relayers', and the one for contract wallets. */
export type LaneSigners = { relayers: readonly Signer[]; wallets: readonly Signer[] };

/** The signers of a chain's lanes. */
export function listLaneSigners(deps: Pick<TransferDeps, "keys">, chain: EvmChain): LaneSigners {
  const keys = deps.keys.get(chain.chain);
  if (!keys) return { relayers: [], wallets: [] };
  const wallets = keys.lanes.slice(-1);
  const relayers = hasWalletLane(chain) ? keys.lanes.slice(0, -1) : keys.lanes;
  return { relayers, wallets };
}

/** True when contract wallets have a lane of their own; with a single lane they share it. */
export function hasWalletLane({ network }: Pick<EvmChain, "network">): boolean {
  return network.lanes.length > 1;
}

/** The account that sends for contract wallets. */
export function walletLaneOf({ network }: Pick<EvmChain, "network">): Hex {
  return (network.lanes.at(-1)?.address ?? "").toLowerCase() as Hex;
}
