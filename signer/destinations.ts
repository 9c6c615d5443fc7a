import type { RefusalReason } from "./refusals.ts";
import type { Store } from "./store.ts";

/** A receiver of a merchant's settlements of one asset, in the canonical form of its chain. */
export type Destination = { merchantId: string; asset: string; receiver: string };

const HOUR_MS = 3_600_000;

/**
 * Records a destination that a worker reports for the first time. The first destination of a merchant that has none for the
 * asset and was never paid applies at once, any other after the waiting period. Call it inside a transaction.
 */
export function recordDestination(
  store: Store,
  { merchantId, asset, receiver }: Destination,
  { at, waitingHours }: { at: Date; waitingHours: number },
): void {
  const [newest] = listDestinations(store, { merchantId, asset });
  if (newest?.receiver === receiver || findApplied(store, { merchantId, asset }, at)?.receiver === receiver) return;
  const isFirst = newest === undefined && !wasPaid(store, merchantId);
  const appliesAt = isFirst ? at.getTime() : at.getTime() + waitingHours * HOUR_MS;
  store
    .prepare("insert into destination (merchant_id, asset, receiver, claimed_at, applies_at) values (?, ?, ?, ?, ?)")
    .run(merchantId, asset, receiver, at.getTime(), appliesAt);
}

/** Returns why a merchant must not be paid to a receiver now, or undefined. */
export function findDestinationRefusal(
  store: Store,
  { merchantId, asset, receiver }: Destination,
  at: Date,
): Extract<RefusalReason, "destination_unapproved" | "destination_waiting"> | undefined {
  if (findApplied(store, { merchantId, asset }, at)?.receiver === receiver) return undefined;
  const isKnown = listDestinations(store, { merchantId, asset }).some((one) => one.receiver === receiver);
  return isKnown ? "destination_waiting" : "destination_unapproved";
}

/**
 * Returns true while every destination of the merchant is younger than the waiting period. The lower limit for new merchants
 * applies until then.
 */
export function isNewMerchant(
  store: Store,
  merchantId: string,
  { at, waitingHours }: { at: Date; waitingHours: number },
): boolean {
  const row = store.prepare("select min(claimed_at) as first from destination where merchant_id = ?").get(merchantId);
  return typeof row?.["first"] !== "number" || at.getTime() - row["first"] < waitingHours * HOUR_MS;
}

type Row = { receiver: string; applies_at: number };

/** Returns the destinations of a merchant and asset, the newest claim first. */
function listDestinations(store: Store, { merchantId, asset }: Omit<Destination, "receiver">): Row[] {
  return store
    .prepare("select receiver, applies_at from destination where merchant_id = ? and asset = ? order by id desc")
    .all(merchantId, asset) as Row[];
}

function findApplied(store: Store, of: Omit<Destination, "receiver">, at: Date): Row | undefined {
  return listDestinations(store, of).find(({ applies_at }) => applies_at <= at.getTime());
}

function wasPaid(store: Store, merchantId: string): boolean {
  return (
    store.prepare("select 1 from payout where merchant_id = ? and kind = 'settlement' limit 1").get(merchantId) !==
    undefined
  );
}
