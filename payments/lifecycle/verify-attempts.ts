import { type AttemptWithContext, markAsVerifiedByWallet } from "../../db/queries/attempts.ts";
import type { VerificationResult } from "../../transfers/verification.ts";
import type { Verifier } from "../../transfers/verifier.ts";
import { findQuoteEnd } from "../options/quotes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { acceptAttempts } from "./accept-attempts.ts";
import { checkAttempts } from "./check-attempts.ts";
import { omitAttemptsOfOthers } from "./gone-chains.ts";
import { refuseAttempts } from "./refuse-attempts.ts";
import { reportAccepted } from "./report-accepted.ts";

export type VerifyDeps = PaymentDeps & { verifier: Verifier };

/** How long the network may not know a transaction that a wallet claims to have sent, milliseconds. */
const UNKNOWN_FOR_MS = 30_000;
/** How long after the deadline, or the end of its price, a transaction that was confirmed before may still be pending, milliseconds. */
const PENDING_FOR_MS = 60_000;

/**
 * How often a batch is repeated at once for attempts whose payers have committed funds to another payment meanwhile.
 */
const MAX_REPEATS = 3;

/** The result of an attempt that was neither accepted nor refused. `byCode`: its payer is a contract wallet. */
export type VerifyResult = { byCode?: true } | { error: unknown; byCode?: never };

/**
 * Verifies a batch of attempts of one group. Accepted attempts are enqueued and announced as soon as they are
 * committed, whatever happens to the others. Returns results for the attempts that could be neither accepted nor
 * refused. An attempt on a chain that only other workers have stays as it is.
 */
export async function verifyBatch(
  deps: VerifyDeps,
  batch: readonly AttemptWithContext[],
): Promise<Map<string, VerifyResult>> {
  const results = new Map<string, VerifyResult>();
  let attempts = await omitAttemptsOfOthers(deps, batch);
  for (let repeat = 0; attempts.length > 0 && repeat <= MAX_REPEATS; repeat++) {
    const verified = await verifyOnce(deps, attempts);
    for (const [id, result] of verified.results) results.set(id, result);
    attempts = verified.raced;
  }
  return results;
}

/** Verifies attempts once. `raced` lists the attempts that are to be verified again, as `acceptAttempts` returns them. */
async function verifyOnce(
  deps: VerifyDeps,
  attempts: readonly AttemptWithContext[],
): Promise<{ results: Map<string, VerifyResult>; raced: AttemptWithContext[] }> {
  const outcomes = await checkAttempts(deps, attempts);
  const byCode = attempts.filter((whole) => isByCode(outcomes.get(whole))).map(({ attempt }) => attempt.id);
  await markAsVerifiedByWallet(deps.db, byCode);
  const valid = attempts.filter((whole) => outcomes.get(whole)?.ok);
  const { transfers, raced } = await acceptAttempts(deps, outcomes, valid);
  await reportAccepted(deps, valid, { transfers, outcomes });
  const refusals = attempts.flatMap((whole) => {
    const outcome = outcomes.get(whole);
    const isLeft = transfers.has(whole.attempt.id) || raced.has(whole) || isByCode(outcome);
    if (isLeft || isVerifiedLater(deps, whole, outcome)) return [];
    return [{ whole, reason: outcome && !outcome.ok ? outcome.reason : "the payment is no longer waiting" }];
  });
  const failed = await refuseAttempts(deps, refusals);
  await deps.publishPaymentChanges(
    attempts.filter(({ attempt }) => !transfers.has(attempt.id)).map(({ payment }) => payment.id),
  );
  const results = new Map<string, VerifyResult>(byCode.map((id) => [id, { byCode: true }]));
  for (const [id, error] of failed) results.set(id, { error });
  return { results, raced: [...raced] };
}

function isByCode(outcome: VerificationResult | undefined): boolean {
  return outcome?.ok === false && outcome.byCode === true;
}

/**
 * Returns true if an attempt cannot be verified yet. The sweep enqueues it again with growing delays, and the payment
 * stays payable.
 */
function isVerifiedLater(
  deps: VerifyDeps,
  { attempt, payment, option }: AttemptWithContext,
  outcome: VerificationResult | undefined,
): boolean {
  if (outcome?.ok !== false || outcome.later === undefined) return false;
  const now = deps.now().getTime();
  return outcome.later === "pending"
    ? now < Math.min(payment.expires_at.getTime(), findQuoteEnd(option)?.getTime() ?? Infinity) + PENDING_FOR_MS
    : now - attempt.created_at.getTime() < UNKNOWN_FOR_MS;
}
