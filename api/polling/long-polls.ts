import { done, type Result, refuse } from "../../payments/error-codes.ts";
import { findVerificationResult } from "../../payments/lifecycle/confirm-payment.ts";
import { findStatus, type PaymentQuery } from "../../payments/lifecycle/read-payment.ts";
import type { PaymentStatus } from "../../payments/views.ts";
import type { ApiDeps } from "../api-deps.ts";
import type { Hold, Watch } from "./waiters.ts";

/** Longest hold of a request, milliseconds. Native wallets abort a request after 30 s. */
export const MAX_HOLD_MS = 25_000;
/** Time that a confirm without `maxPollMs` waits for its verification result, milliseconds. */
const VERIFICATION_WAIT_MS = 2_000;

/** Returns the status of a payment: at once, or with `maxPollMs` as soon as it changes. Refuses like findStatus. */
export async function pollStatus(
  deps: ApiDeps,
  query: PaymentQuery,
  { maxPollMs, ...hold }: Hold & { maxPollMs: number | undefined },
): Promise<Result<PaymentStatus>> {
  if (!maxPollMs) return deps.statuses.findStatus(query);
  const watch = watchPayment(deps, query, { ms: maxPollMs, ...hold });
  try {
    const first = await deps.statuses.findStatus(query);
    if (!first.ok || first.value.isFinal) return first;
    // Not by awaitChange: each async function that waits takes half a kilobyte of every held request.
    return done((await watch.next(first.value.stateVersion)) ?? first.value);
  } finally {
    watch.close();
  }
}

/** Waits until the version of a payment's state is higher than `after`, or `ms` have passed. */
export async function waitForStatusChange(
  deps: ApiDeps,
  query: PaymentQuery,
  { after, ...hold }: Hold & { after: number; ms: number },
): Promise<void> {
  const watch = watchPayment(deps, query, hold);
  try {
    const first = await findStatus(deps, query);
    if (first.ok && first.value.stateVersion <= after) await awaitChange(watch, first.value);
  } finally {
    watch.close();
  }
}

/**
 * Accepts a confirm and waits for its verification result, for `maxPollMs` or two seconds. Refuses a confirm that failed
 * verification with `invalid_params` and the reason. Otherwise returns the current status, also when there is no result yet.
 * With `maxPollMs`, a repeated confirm, which has no result to wait for, is held like a status request.
 * @param accept writes the attempt; runs after the watch is open, so that a fast result is not missed. Receives a promise that
 * settles when the result is known here
 * @param until `final` holds the confirm further, until the payment is final or `maxPollMs` have passed
 */
export async function pollVerification(
  deps: ApiDeps,
  query: PaymentQuery,
  accept: (ended: Promise<void>) => Promise<Result<{ attemptId: string | null }>>,
  { maxPollMs, until, ...hold }: Hold & { maxPollMs: number | undefined; until: "verified" | "final" },
): Promise<Result<PaymentStatus>> {
  const watch = watchPayment(deps, query, { ms: maxPollMs ?? VERIFICATION_WAIT_MS, ...hold });
  try {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const accepted = await accept(ended);
    if (!accepted.ok) return accepted;
    const { attemptId } = accepted.value;
    const isNew = attemptId !== null;
    const present = await (isNew
      ? awaitVerification(deps, query, watch, attemptId).finally(end)
      : readStatus(deps, query));
    if (!present.ok || !maxPollMs) return present;
    if (until === "final") return done(await awaitEnd(watch, present.value));
    return isNew ? present : done(await awaitChange(watch, present.value));
  } finally {
    watch.close();
  }
}

function watchPayment(deps: ApiDeps, { paymentId }: PaymentQuery, { ms, ...hold }: Hold & { ms: number }): Watch {
  return deps.waiters.open({ paymentId, ms: Math.min(ms, MAX_HOLD_MS), ...hold });
}

/** Waits for a higher version of the state: a read that began before `first` may deliver an older one. */
async function awaitChange(watch: Watch, first: PaymentStatus): Promise<PaymentStatus> {
  return first.isFinal ? first : ((await watch.next(first.stateVersion)) ?? first);
}

/** Waits until the payment is final. Returns its newest status when the watch ends before that. */
async function awaitEnd(watch: Watch, first: PaymentStatus): Promise<PaymentStatus> {
  let newest = first;
  for (;;) {
    const next = await awaitChange(watch, newest);
    if (next === newest || next.isFinal) return next;
    newest = next;
  }
}

/**
 * Waits for an attempt's verification result. The payment is in `requires_action` until then, so any other state is the
 * result too.
 */
async function awaitVerification(
  deps: ApiDeps,
  query: PaymentQuery,
  watch: Watch,
  attemptId: string,
): Promise<Result<PaymentStatus>> {
  for (;;) {
    const next = await watch.next();
    if (next !== undefined && next.state !== "requires_action") return done(next);
    const result = await findVerificationResult(deps, attemptId);
    if (typeof result === "object") return refuse("invalid_params", result.refused);
    if (next === undefined || result === "verified") return readStatus(deps, query);
  }
}

/** Reads a status from the database that is about to be shown. */
async function readStatus(deps: ApiDeps, query: PaymentQuery): Promise<Result<PaymentStatus>> {
  const found = await findStatus(deps, query);
  if (found.ok) await deps.statuses.notify([found.value]);
  return found;
}
