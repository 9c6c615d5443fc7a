import { listWaitingKeys } from "./approval-keys.ts";
import { listWaiting } from "./destinations.ts";
import type { SignerDeps } from "./signer-deps.ts";

/** Series of each gauge at most. */
const SERIES = 100;

/**
 * Sets the gauges of the destinations and approval keys that wait. Each claim is in the series of its number's last two digits,
 * so it has an alert of its own: one that waits for days does not hide a later one, of whatever merchant.
 */
export function setWaitingGauges({ store, metrics }: Pick<SignerDeps, "store" | "metrics">): void {
  for (const [gauge, claims] of [
    [metrics.signerDestinationsWaiting, listWaiting(store)],
    [metrics.signerApprovalKeysWaiting, listWaitingKeys(store)],
  ] as const) {
    gauge.reset();
    for (const { id } of claims) gauge.inc({ claim: String(id % SERIES) });
  }
}
