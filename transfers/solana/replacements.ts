import type { TrackedTransaction } from "./tracked-transaction.ts";

// A payout that is not included is signed again at a higher price, with the same durable nonce. The cluster includes one of these
// transactions.

const nonceOf = ({ row }: Pick<TrackedTransaction, "row">) => `${row.lane_id} ${row.nonce}`;
const isShown = ({ status }: TrackedTransaction) => status !== undefined && status.depth !== "processed";

/** Returns the transactions that are in no slot, and whose nonce is that of no transaction that is in a slot. Pure. */
export function listWaiting(tracked: readonly TrackedTransaction[]): TrackedTransaction[] {
  const isIn = ({ row, status }: TrackedTransaction) => status !== undefined || row.state === "included";
  const used = new Set(tracked.filter(isIn).map(nonceOf));
  return tracked.filter((one) => !used.has(nonceOf(one)));
}

/** Returns the transactions that no other one replaces. Pure. */
export function listNewest(tracked: readonly TrackedTransaction[]): TrackedTransaction[] {
  const newest = new Map<string, number>();
  for (const one of tracked) newest.set(nonceOf(one), Math.max(newest.get(nonceOf(one)) ?? 0, one.row.replacement));
  return tracked.filter((one) => one.row.replacement === newest.get(nonceOf(one)));
}

/**
 * Returns the included transactions that the endpoint does not know any more, while it shows another one with the same nonce in a slot:
 * the slot of the former has disappeared. Pure.
 */
export function listOvertaken(tracked: readonly TrackedTransaction[]): TrackedTransaction[] {
  const shown = new Set(tracked.filter(isShown).map(nonceOf));
  return tracked.filter((one) => one.row.state === "included" && !one.status && shown.has(nonceOf(one)));
}

/** Returns the transactions without those with a nonce of which the endpoint shows two in slots, which no cluster includes. Pure. */
export function withoutContradictions(tracked: readonly TrackedTransaction[]): TrackedTransaction[] {
  const shown = Map.groupBy(tracked.filter(isShown), nonceOf);
  return tracked.filter((one) => (shown.get(nonceOf(one))?.length ?? 0) < 2);
}
