import { findMarker } from "../../chains/solana/payout-markers.ts";
import type { SignerDeps } from "../signer-deps.ts";
import { findClosing } from "./transaction-records.ts";

/**
 * Returns true for a payout whose marker was closed because the payout was final, if a state at `height` includes the payout.
 * An endpoint that lags shows an older state, in which the money has not left yet. Returns false for chains without markers.
 */
export function wasMadeBy(
  { store, chains }: Pick<SignerDeps, "store" | "chains">,
  { chain: id, payoutNonce, height }: { chain: string; payoutNonce: string | undefined; height: number },
): boolean {
  const chain = chains.get(id);
  if (chain?.namespace !== "solana" || payoutNonce === undefined) return false;
  const closing = findClosing(store, { chain: id, marker: findMarker(chain.treasury, payoutNonce).address });
  return closing !== undefined && closing.slot <= height;
}
