import type { Store } from "./store.ts";

/** The key of an approver of a merchant's destinations: an API key with the scope `settlements:approve`. */
export type ApprovalKey = { merchantId: string; publicKey: string };

const HOUR_MS = 3_600_000;

/**
 * Records approval keys that a worker reports. A key counts after the waiting period since its first report for the merchant,
 * because a thief of the database can have keys of their own reported. Returns those that are new. Call it inside a transaction.
 */
export function recordApprovalKeys(
  store: Store,
  keys: readonly ApprovalKey[],
  { at, waitingHours }: { at: Date; waitingHours: number },
): ApprovalKey[] {
  const insert = store.prepare(
    `insert into approval_key (merchant_id, public_key, claimed_at, applies_at) values (?, ?, ?, ?)
    on conflict (merchant_id, public_key) do nothing`,
  );
  const appliesAt = at.getTime() + waitingHours * HOUR_MS;
  return keys.filter(
    ({ merchantId, publicKey }) => insert.run(merchantId, publicKey, at.getTime(), appliesAt).changes > 0,
  );
}

/** Returns how many keys do not count yet. */
export function countWaitingKeys(store: Store, at: Date): number {
  const row = store.prepare("select count(*) as count from approval_key where applies_at > ?").get(at.getTime());
  return Number(row?.["count"]);
}

/** Returns whether a key may approve a merchant's destinations now. */
export function findApprovalKey(
  store: Store,
  { merchantId, publicKey }: ApprovalKey,
  at: Date,
): "applied" | "waiting" | undefined {
  const row = store
    .prepare("select applies_at from approval_key where merchant_id = ? and public_key = ?")
    .get(merchantId, publicKey);
  if (row === undefined) return undefined;
  return Number(row["applies_at"]) <= at.getTime() ? "applied" : "waiting";
}
