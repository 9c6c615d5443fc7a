import type { EvmChain } from "../chains/evm/open.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import type { TransferDeps } from "./deps.ts";

/** Whose transactions a chain's lanes sign: the relayers', and the treasury's own where it has to send something itself. */
export type LaneSigners = { relayers: readonly Signer[]; own: readonly Signer[] };

/** The signers of a chain's lanes. */
export function listLaneSigners(deps: Pick<TransferDeps, "keys">, chain: EvmChain): LaneSigners {
  const keys = deps.keys.get(chain.chain);
  if (!keys) return { relayers: [], own: [] };
  return { relayers: keys.lanes, own: needsOwnLane(chain) ? [keys.treasury] : [] };
}

/** Tokens without EIP-3009 are paid out by transactions of the treasury's own, for which it needs gas. */
export function needsOwnLane(chain: EvmChain): boolean {
  return [...chain.tokens.values()].some(({ kind }) => kind !== "eip3009");
}
