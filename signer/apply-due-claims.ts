import { applyDueKeys, listWaitingKeys } from "./approval-keys.ts";
import { applyDueDestinations, listWaiting } from "./destinations.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction } from "./store.ts";

type Deps = Pick<SignerDeps, "store" | "readLimits" | "log" | "now">;

/**
 * Lets the destinations apply and the approval keys count whose waiting period has ended. Does nothing while the limits file
 * says `paused` or is not usable: a pause gives operators the time to reject, however long it lasts. The process calls it every
 * second, so nothing applies while it is down either.
 */
export function applyDueClaims(deps: Deps): void {
  if (deps.readLimits()?.paused !== false) return;
  const at = deps.now();
  const isDue = ({ appliesAt }: { appliesAt: number }) => appliesAt <= at.getTime();
  if (![...listWaiting(deps.store), ...listWaitingKeys(deps.store)].some(isDue)) return;
  inStoreTransaction(deps.store, () => applyDue(deps, at));
}

/** Does the same for a signer that is not paused, inside of a transaction. */
export function applyDue({ store, log }: Pick<Deps, "store" | "log">, at: Date): void {
  for (const { merchantId: merchant, asset, receiver } of applyDueDestinations(store, at))
    log.info({ merchant, asset, receiver }, "destination applies");
  for (const { merchantId: merchant, publicKey } of applyDueKeys(store, at))
    log.info({ merchant, publicKey }, "approval key applies");
}
