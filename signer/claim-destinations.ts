import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import { findDestinationRefusal, recordDestination } from "./destinations.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { DestinationsRequest, DestinationsResponse } from "./protocol.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction } from "./store.ts";

/** Records the destinations that a worker reports, so that their waiting periods begin. */
export function claimDestinations(deps: SignerDeps, request: DestinationsRequest): DestinationsResponse {
  const waitingHours = deps.readLimits()?.destinationWaitingHours;
  const at = deps.now();
  return inStoreTransaction(deps.store, () => ({
    destinations: request.destinations.map(({ merchantId, asset: given, receiver }) => {
      const asset = canonicalAsset(given);
      const one = { merchantId, asset, receiver: canonicalAddress(chainOfAsset(asset), receiver) };
      if (waitingHours !== undefined) recordDestination(deps.store, one, { at, waitingHours });
      const isApplied = findDestinationRefusal(deps.store, one, at) === undefined;
      return { state: isApplied ? ("applied" as const) : ("waiting" as const), appliesAt: null };
    }),
    statements: request.statements.map(() => ({ ok: false, detail: "statements are not supported" })),
  }));
}
