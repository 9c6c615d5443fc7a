import { findVerdict } from "../payments/confirm.ts";
import { done, type Result, refuse } from "../payments/errors.ts";
import { findStatus, type PaymentQuery } from "../payments/read.ts";
import type { PaymentStatus } from "../payments/views.ts";
import type { ApiDeps } from "./deps.ts";
import type { Watch } from "./waiters.ts";

/** Longest hold, milliseconds. Native wallets give up on a request after 30 s. */
export const LONGEST_HOLD_MS = 25_000;
/** How long a confirm without `maxPollMs` waits for its verdict, milliseconds. */
const VERDICT_MS = 2_000;

/** What a held call needs of its connection. */
export type Hold = {
  onGone: (leave: () => void) => void;
  /** Is told how long the call was held, milliseconds, so that its duration can be told without it. */
  held: (ms: number) => void;
};

/** Where a payment stands: at once, or with `maxPollMs` as soon as that is no longer what it is now. Refuses like findStatus. */
export async function pollStatus(
  deps: ApiDeps,
  query: PaymentQuery,
  { maxPollMs, ...hold }: Hold & { maxPollMs: number | undefined },
): Promise<Result<PaymentStatus>> {
  if (!maxPollMs) return findStatus(deps, query);
  return watchPayment(deps, query.paymentId, { ms: maxPollMs, ...hold }, async (watch) => {
    const first = await findStatus(deps, query);
    return first.ok ? done(await awaitChange(watch, first.value)) : first;
  });
}

/** Waits until a payment is past a version of its state, or `ms` are over; looks first, so that nothing is missed. */
export async function waitForNews(
  deps: ApiDeps,
  query: PaymentQuery,
  { after, ...hold }: Hold & { after: number; ms: number },
): Promise<void> {
  await watchPayment(deps, query.paymentId, hold, async (watch) => {
    const first = await findStatus(deps, query);
    if (first.ok && first.value.stateVersion <= after) await awaitChange(watch, first.value);
  });
}

/**
 * Takes a confirm and waits for its verdict: `maxPollMs`, or two seconds. A refused one is `invalid_params` with the
 * reason; anything else is answered with the present status, also when there is no verdict yet.
 * With `maxPollMs` a confirm that has nothing to wait for (a repeat) is held like a status.
 * @param accept writes the attempt; called when the watch is open, so that a quick verdict is not missed
 */
export async function pollVerdict(
  deps: ApiDeps,
  query: PaymentQuery,
  accept: () => Promise<Result<{ attemptId: string | null }>>,
  { maxPollMs, ...hold }: Hold & { maxPollMs: number | undefined },
): Promise<Result<PaymentStatus>> {
  return watchPayment(deps, query.paymentId, { ms: maxPollMs ?? VERDICT_MS, ...hold }, async (watch) => {
    const accepted = await accept();
    if (!accepted.ok) return accepted;
    const { attemptId } = accepted.value;
    if (attemptId !== null) return awaitVerdict(deps, query, watch, attemptId);
    const present = await findStatus(deps, query);
    return present.ok && maxPollMs ? done(await awaitChange(watch, present.value)) : present;
  });
}

async function watchPayment<T>(
  deps: ApiDeps,
  paymentId: string,
  { ms, onGone, held }: Hold & { ms: number },
  work: (watch: Watch) => Promise<T>,
): Promise<T> {
  const watch = deps.waiters.open({ paymentId, ms: Math.min(ms, LONGEST_HOLD_MS), onGone });
  try {
    return await work(watch);
  } finally {
    held(watch.close());
  }
}

/** A read that began before the first one may come in after it: only a higher version is news. */
async function awaitChange(watch: Watch, first: PaymentStatus): Promise<PaymentStatus> {
  if (first.isFinal) return first;
  for (;;) {
    const next = await watch.next();
    if (next === undefined) return first;
    if (next.stateVersion > first.stateVersion) return next;
  }
}

/** An attempt is waited for only while its payment awaits the buyer, so any other state is the verdict. */
async function awaitVerdict(
  deps: ApiDeps,
  query: PaymentQuery,
  watch: Watch,
  attemptId: string,
): Promise<Result<PaymentStatus>> {
  for (;;) {
    const next = await watch.next();
    if (next !== undefined && next.state !== "requires_action") return done(next);
    const verdict = await findVerdict(deps, attemptId);
    if (typeof verdict === "object") return refuse("invalid_params", verdict.refused);
    if (next === undefined || verdict === "verified") return findStatus(deps, query);
  }
}
