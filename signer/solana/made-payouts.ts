import { findMarker } from "../../chains/solana/payout-markers.ts";
import type { SignerDeps } from "../signer-deps.ts";
import { findClosing, insertClosing } from "./transaction-records.ts";

/**
 * Records that a payout which the history shows is never signed again. Its marker, which would stop a second one, may have been
 * closed. Nothing is known of other transactions that were signed for it, so the signer closes no such marker. Does nothing for
 * chains where the token or contract refuses a second transfer itself.
 */
export function recordMadePayout(
  { store, chains }: Pick<SignerDeps, "store" | "chains">,
  id: string,
  number: string | null,
): void {
  const chain = chains.get(id);
  if (chain?.namespace !== "solana" || number === null) return;
  insertClosing(store, { chain: id, marker: findMarker(chain.treasury, number).address, slot: 0 }, new Date(0));
}

/**
 * Returns true for a payout whose marker was closed because the payout was final, if a state at `height` includes the payout.
 * An endpoint that lags shows an older state, in which the money has not left yet. Returns false for chains without markers.
 */
export function wasMadeBy(
  { store, chains }: Pick<SignerDeps, "store" | "chains">,
  { chain: id, number, height }: { chain: string; number: string | undefined; height: number },
): boolean {
  const chain = chains.get(id);
  if (chain?.namespace !== "solana" || number === undefined) return false;
  const closing = findClosing(store, { chain: id, marker: findMarker(chain.treasury, number).address });
  return closing !== undefined && closing.slot <= height;
}
