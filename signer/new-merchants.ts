import { findFirstClaim } from "./destinations.ts";
import type { Store } from "./store.ts";

const HOUR_MS = 3_600_000;

/**
 * Returns true until a merchant's first destination and its first verified deposit are both older than the waiting period. The
 * lower limits for new merchants apply until then. The ids of merchants cost nothing, so one that was reported long ago and has
 * received no money is new. A merchant that the chain's history has paid is not, whenever a rebuild has recorded it.
 */
export function isNewMerchant(
  store: Store,
  merchantId: string,
  { at, waitingHours }: { at: Date; waitingHours: number },
): boolean {
  const beginnings = [findFirstClaim(store, merchantId), findFirstDeposit(store, merchantId)];
  const isYoung = beginnings.some((since) => since === undefined || at.getTime() - since < waitingHours * HOUR_MS);
  return isYoung && !wasPaidBefore(store, merchantId);
}

/** Returns when the first deposit of a merchant was verified, Unix milliseconds. */
function findFirstDeposit(store: Store, merchantId: string): number | undefined {
  const row = store.prepare("select min(verified_at) as first from deposit where merchant_id = ?").get(merchantId);
  return typeof row?.["first"] === "number" ? row["first"] : undefined;
}

/** Returns true if a rebuild has recorded a payout of the merchant. */
function wasPaidBefore(store: Store, merchantId: string): boolean {
  const query = "select 1 from payout where merchant_id = ? and signed_at = 0 limit 1";
  return store.prepare(query).get(merchantId) !== undefined;
}
