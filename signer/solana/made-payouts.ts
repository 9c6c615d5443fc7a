import { findMarker } from "../../chains/solana/payout-markers.ts";
import type { SignerDeps } from "../signer-deps.ts";
import { insertClosing } from "./transaction-records.ts";

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
