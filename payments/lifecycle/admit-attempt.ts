import {
  type AttemptHead,
  deleteRefusedAttempts,
  insertAttempt,
  lockUnprovenAttempts,
  type NewAttempt,
} from "../../db/queries/attempts.ts";
import type { Db } from "../../db/tables.ts";

/**
 * Limits on stored confirms that no key signature proves. Anyone who has seen the payment's link can send them. Each
 * option has its own limit, so that garbage for one account does not crowd out another account.
 */
const OF_OPTION = { waiting: 3, kept: 10 };
const OF_PAYMENT = { waiting: 20, kept: 30 };
/** A refused confirm can be evicted after this time, milliseconds. */
const KEPT_MS = 60_000;
/** `Retry-After` while other confirms wait for verification, seconds. */
const WAITING_S = 2;

export type Admission = { admit: true; evict: string[] } | { admit: false; retryAfterSeconds: number };

/**
 * Decides whether another confirm may be stored, and which refused confirms are evicted for it. Refused confirms of
 * other options never block the first confirm of an option.
 * @param kept the payment's stored confirms, oldest first
 */
export function decideAdmission(
  kept: readonly Pick<AttemptHead, "id" | "option_id" | "state" | "created_at">[],
  { optionId, now }: { optionId: string; now: Date },
): Admission {
  const own = kept.filter(({ option_id }) => option_id === optionId);
  const countWaiting = (some: typeof kept) => some.filter(({ state }) => state === "waiting").length;
  if (countWaiting(own) >= OF_OPTION.waiting || countWaiting(kept) >= OF_PAYMENT.waiting)
    return { admit: false, retryAfterSeconds: WAITING_S };
  const full = own.length >= OF_OPTION.kept ? own : kept.length >= OF_PAYMENT.kept ? kept : undefined;
  if (!full) return { admit: true, evict: [] };
  const oldest = full.find(({ state }) => state === "refused");
  if (!oldest) return { admit: false, retryAfterSeconds: WAITING_S };
  const leftMs = oldest.created_at.getTime() + KEPT_MS - now.getTime();
  if (leftMs > 0 && own.length > 0) return { admit: false, retryAfterSeconds: Math.ceil(leftMs / 1000) };
  return { admit: true, evict: [oldest.id] };
}

/**
 * Writes an attempt that no key signature proves, if the limits allow it. `written` is false when a concurrent request
 * has stored the same confirm. Runs in the caller's transaction.
 */
export async function admitAttempt(
  db: Db,
  attempt: NewAttempt,
): Promise<{ written: boolean } | { retryAfterSeconds: number }> {
  const kept = await lockUnprovenAttempts(db, attempt.payment_id);
  const admission = decideAdmission(kept, { optionId: attempt.option_id, now: attempt.created_at });
  if (!admission.admit) return admission;
  await deleteRefusedAttempts(db, admission.evict);
  const row = { ...attempt, results: JSON.stringify(attempt.results), state: "waiting" as const, refusal: null };
  return { written: await insertAttempt(db, row) };
}
