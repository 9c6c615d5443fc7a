import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { type ExpiryRules, moveToExpired } from "../../db/queries/payment-moves.ts";
import { findPassedDeadline, findPaymentRow, postponeExpiry } from "../../db/queries/payments.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { toGoneSince } from "./gone-chains.ts";

/**
 * Tolerance for block timestamps, which are whole seconds, milliseconds. On a chain that produces blocks on demand, a
 * block produced this long after a deadline may carry a timestamp before it.
 */
const BLOCK_SECOND_MS = 1_000;
/** Minimum and maximum delay before an undecided payment is checked again, milliseconds. */
const RECHECK_MS = 250;
const LONGEST_MS = 60_000;
/** Time after the next check at which the sweep enqueues it again, in case its job was lost, milliseconds. */
const SWEEP_AFTER_MS = 5_000;
/** A job waits for this long, milliseconds. After a longer delay, the sweep enqueues the next one. */
const WAITING_MS = 5_000;

/**
 * `decided: false`: the deadline has passed, but it is not known yet whether the payment was paid in time. The caller checks again after
 * `waitMs`, milliseconds; without it, the sweep enqueues the next check.
 */
export type Expiry = { decided: true } | { decided: false; waitMs?: number };

/**
 * Expires a payment whose deadline has passed without money. A payment that is being paid, or whose deadline lies
 * ahead, does not change; the guarded move decides the race with verification.
 *
 * A payment stays undecided while one of these holds:
 * - A confirm waits for verification.
 * - On a chain of one of its options, the watcher has not read past the deadline by the chain's clock, unless this process
 *   does not have the chain and no worker has had it for a day.
 * - The watcher does not currently read the asset of one of its options, unless the asset left the networks file more than a
 *   day ago and has not been configured again.
 */
export async function expirePayment(deps: PaymentDeps, paymentId: string): Promise<Expiry> {
  const at = deps.now();
  const isExpired = await deps.db
    .transaction()
    .execute((db) => moveToExpired(db, { id: paymentId, at, rules: toExpiryRules(deps, at) }));
  if (!isExpired) return postpone(deps, paymentId, at);
  const payment = await findPaymentRow(deps.db, paymentId);
  if (!payment) throw new Error(`payment ${paymentId} expired and is gone`);
  deps.metrics.paymentTransitions.inc({ mode: payment.mode, from: "requires_action", to: "expired" });
  await deps.publishPaymentChanges([paymentId]);
  return { decided: true };
}

function toExpiryRules({ chains }: PaymentDeps, at: Date): ExpiryRules {
  const open = [...chains.values()];
  const onDemand = open.filter(({ chain, network }) => getChainDriver(chain).makesBlocksOnDemand(network));
  const ids = (some: typeof open) => some.map(({ chain }) => chain);
  return { chains: ids(open), onDemand: ids(onDemand), blockSecondMs: BLOCK_SECOND_MS, goneSince: toGoneSince(at) };
}

/**
 * Schedules the next check of an undecided payment. The delay grows with the time since the deadline. While jobs are late, the sweep
 * enqueues another one beside a job that waits, and both would go on: during a long outage they would become ever more.
 */
async function postpone(deps: PaymentDeps, paymentId: string, at: Date): Promise<Expiry> {
  const deadline = await findPassedDeadline(deps.db, { id: paymentId, at });
  if (!deadline) return { decided: true };
  const waitMs = Math.min(LONGEST_MS, Math.max(RECHECK_MS, at.getTime() - deadline.getTime()));
  const isWaiting = waitMs < WAITING_MS;
  const dueAt = new Date(at.getTime() + waitMs + (isWaiting ? SWEEP_AFTER_MS : 0));
  await postponeExpiry(deps.db, { id: paymentId, dueAt });
  return isWaiting ? { decided: false, waitMs } : { decided: false };
}
