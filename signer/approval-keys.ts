import type { Store } from "./store.ts";

/** The Ed25519 public key, in hex, by which a merchant approves and rejects changes of its destinations. */
export type ApprovalKey = { merchantId: string; publicKey: string };

/**
 * The state of a key. `revoked`: it has applied and was revoked since; it still rejects, so that a thief of the database cannot
 * silence a merchant by a revocation. `never_applied`: it was revoked within its waiting period, and decides nothing.
 */
type KeyState = "waiting" | "applied" | "revoked" | "never_applied";

const HOUR_MS = 3_600_000;

/**
 * Records approval keys that a worker reports. A key counts after the waiting period since its first report for the merchant,
 * because a thief who has the database can report keys of their own. A key that was revoked stays so, however often it is
 * reported. Returns those that are new. Call it inside a transaction.
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

/**
 * Revokes a key for good, also one that was never reported. Nobody has to prove that they may: a revocation only lengthens
 * waiting periods. Returns false when it was revoked before. Call it inside a transaction.
 * @param by the signed statement, or null for a report of a worker
 */
export function revokeApprovalKey(
  store: Store,
  key: ApprovalKey,
  { at, waitingHours, by }: { at: Date; waitingHours: number; by: { text: string; signer: string } | null },
): boolean {
  recordApprovalKeys(store, [key], { at, waitingHours });
  const insert = store.prepare(
    `insert into approval_key_event (approval_key_id, kind, statement, signer, at)
    select id, 'revoked', ?, ?, ? from approval_key where merchant_id = ? and public_key = ?
    on conflict (approval_key_id, kind) do nothing`,
  );
  const { text = null, signer = null } = by ?? {};
  return insert.run(text, signer, at.getTime(), key.merchantId, key.publicKey).changes > 0;
}

/** A key that does not count yet; `appliesAt` in Unix milliseconds. */
type WaitingKey = ApprovalKey & { id: number; appliesAt: number };

/** Returns the keys that neither count nor were revoked, the earliest first. */
export function listWaitingKeys(store: Store): WaitingKey[] {
  return store
    .prepare(
      `select id, merchant_id as merchantId, public_key as publicKey, applies_at as appliesAt from approval_key k
      where not exists (select 1 from approval_key_event e where e.approval_key_id = k.id) order by applies_at, id`,
    )
    .all() as WaitingKey[];
}

/**
 * Lets the keys count whose waiting period has ended, and returns them. Only a signer that runs and is not paused calls it,
 * inside a transaction.
 */
export function applyDueKeys(store: Store, at: Date): WaitingKey[] {
  const insert = store.prepare("insert into approval_key_event (approval_key_id, kind, at) values (?, 'applied', ?)");
  const due = listWaitingKeys(store).filter(({ appliesAt }) => appliesAt <= at.getTime());
  for (const { id } of due) insert.run(id, at.getTime());
  return due;
}

/** Returns the state of a key; undefined for one that was never reported for the merchant. */
export function findKeyState(store: Store, { merchantId, publicKey }: ApprovalKey): KeyState | undefined {
  const row = store
    .prepare(
      `select exists (select 1 from approval_key_event e where e.approval_key_id = k.id and e.kind = 'applied') as applied,
        exists (select 1 from approval_key_event e where e.approval_key_id = k.id and e.kind = 'revoked') as revoked
      from approval_key k where merchant_id = ? and public_key = ?`,
    )
    .get(merchantId, publicKey);
  if (row === undefined) return undefined;
  if (row["applied"] === 1) return row["revoked"] === 1 ? "revoked" : "applied";
  return row["revoked"] === 1 ? "never_applied" : "waiting";
}
