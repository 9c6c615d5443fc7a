import { type Actor, insertAudited, ownActor } from "./audit/entries.ts";
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
  { at, waitingHours, actor }: { at: Date; waitingHours: number; actor: Actor },
): ApprovalKey[] {
  const times = { claimed_at: at.getTime(), applies_at: at.getTime() + waitingHours * HOUR_MS };
  return keys.filter(({ merchantId, publicKey }) => {
    const row = { merchant_id: merchantId, public_key: publicKey, ...times };
    const id = insertAudited(store, { table: "approval_key", row, action: "approval_key.claimed", actor, at });
    return id !== undefined;
  });
}

/**
 * Revokes a key for good, also one that was never reported. A caller need not prove that they may: a revocation only lengthens
 * waiting periods. Returns false when it was revoked before. Call it inside a transaction.
 * @param by.text the signed statement; null for a report of a worker
 */
export function revokeApprovalKey(
  store: Store,
  key: ApprovalKey,
  by: { at: Date; waitingHours: number; text: string | null; actor: Actor },
): boolean {
  recordApprovalKeys(store, [key], by);
  const { id } =
    store
      .prepare("select id from approval_key where merchant_id = ? and public_key = ?")
      .get(key.merchantId, key.publicKey) ?? {};
  return insertEvent(store, { id: Number(id), kind: "revoked", ...by });
}

/** Returns false if the key has such an event already. */
function insertEvent(
  store: Store,
  {
    id,
    kind,
    at,
    text,
    actor,
  }: { id: number; kind: "applied" | "revoked"; at: Date; text: string | null; actor: Actor },
): boolean {
  const signer = text === null ? null : actor.id;
  const row = { approval_key_id: id, kind, statement: text, signer, at: at.getTime() };
  const before = { table: "approval_key", id } as const;
  const action = `approval_key.${kind}`;
  return insertAudited(store, { table: "approval_key_event", row, before, action, actor, at }) !== undefined;
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
  const due = listWaitingKeys(store).filter(({ appliesAt }) => appliesAt <= at.getTime());
  for (const { id } of due) insertEvent(store, { id, kind: "applied", at, text: null, actor: ownActor });
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
