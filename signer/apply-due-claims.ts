import { applyDueKeys, listWaitingKeys } from "./approval-keys.ts";
import { applyDueDestinations, listDueDestinations } from "./destinations.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { findHoldEnd } from "./stops.ts";
import { inStoreTransaction, type Store } from "./store.ts";

type Deps = Pick<SignerDeps, "store" | "readLimits" | "log" | "now">;

/**
 * Lets the destinations apply and the approval keys count whose waiting period has ended; of the destinations, those that the service
 * pays to. Does nothing while the limits file says `paused` or is not usable, and for an hour after the signer was stopped: both give
 * operators the time to reject, however long they lasted. The process calls it every second, so nothing applies while it is down either.
 */
export function applyDueClaims(deps: Deps): void {
  if (deps.readLimits()?.paused !== false) return;
  const at = deps.now();
  if (listDue(deps.store, at).length === 0) return;
  inStoreTransaction(deps.store, () => applyDue(deps, at));
}

/** Does the same for a signer that is not paused, inside of a transaction. */
export function applyDue({ store, log }: Pick<Deps, "store" | "log">, at: Date): void {
  if (findHoldEnd(store, at) > 0) return;
  for (const { merchantId: merchant, asset, receiver } of applyDueDestinations(store, at))
    log.info({ merchant, asset, receiver }, "destination applies");
  for (const { merchantId: merchant, publicKey } of applyDueKeys(store, at))
    log.info({ merchant, publicKey }, "approval key applies");
}

/** Returns how many claims wait although their time has come, because the signer was stopped. */
export function countHeld(store: Store, at: Date): number {
  return findHoldEnd(store, at) > 0 ? listDue(store, at).length : 0;
}

function listDue(store: Store, at: Date) {
  const dueKeys = listWaitingKeys(store).filter(({ appliesAt }) => appliesAt <= at.getTime());
  return [...listDueDestinations(store, at), ...dueKeys];
}
