import { moveRows } from "../../db/moves.ts";
import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import { keepVerified } from "../../db/queries/collected-data.ts";
import { moveToProcessing } from "../../db/queries/payment-moves.ts";
import { lockForAcceptance } from "../../db/queries/pending-transfers.ts";
import { insertTransfers } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import type { VerificationResult } from "../../transfers/verification.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { toSignedTransfer } from "./payment-transfer.ts";
import { isCompared, keepFunded } from "./recheck-funds.ts";

/** How long an acceptance waits for a payment, an attempt or a payer that another transaction has locked, milliseconds. */
const LOCK_WAIT_MS = 2_000;

/** Verification results by attempt. */
export type Outcomes = ReadonlyMap<AttemptWithContext, VerificationResult>;
/**
 * `transfers`: the accepted attempts, each with its transfer's id (null in test mode). `raced`: attempts whose payers
 * have committed funds to another payment since they were verified, and later attempts of the same payments.
 */
export type Accepted = { transfers: ReadonlyMap<string, string | null>; raced: ReadonlySet<AttemptWithContext> };

/**
 * Accepts attempts with valid signatures: moves their payments to `processing` and writes their transfers, in one
 * transaction. An attempt is accepted if all of these hold:
 * - It is the earliest of its payment in the batch, and the payment still waits.
 * - It was confirmed before the deadline, however long verification took.
 * - If the buyer pays the merchant directly, the destination is still the merchant's.
 * - The payer has committed its funds to no other payment since they were checked.
 */
export async function acceptAttempts(
  deps: PaymentDeps,
  outcomes: Outcomes,
  attempts: readonly AttemptWithContext[],
): Promise<Accepted> {
  if (attempts.length === 0) return { transfers: new Map(), raced: new Set() };
  const chosen = keepOnePerPayment(attempts);
  return deps.db.transaction().execute(async (db) => {
    const at = deps.now();
    const locked = await lockAttempts(db, outcomes, chosen);
    const raced = new Set<AttemptWithContext>();
    const covered = await keepFunded(db, { outcomes, attempts: locked, raced });
    // A payment whose chosen attempt is not tried may still be paid by another one.
    const tried = new Set(covered.map(({ payment }) => payment.id));
    for (const whole of attempts) if (!tried.has(whole.payment.id) && !chosen.includes(whole)) raced.add(whole);
    const accepted = await movePayments(db, covered, at);
    const ids = accepted.map(({ attempt }) => attempt.id);
    await keepVerified(
      db,
      accepted.flatMap(({ attempt, option }) => (option.needs_data ? [attempt.id] : [])),
    );
    await moveRows(db, "attempt", { ids, from: "waiting", to: "verified", at, set: { due_at: null } });
    await succeedInTestMode(db, accepted, at);
    const transfers = accepted
      .filter(({ payment }) => payment.mode === "live")
      .map((whole) => toSignedTransfer(deps, whole, outcomes.get(whole)));
    await insertTransfers(db, transfers, at);
    const transferOf = new Map(transfers.map((transfer) => [transfer.payment_id, transfer.id]));
    return {
      transfers: new Map(accepted.map(({ attempt, payment }) => [attempt.id, transferOf.get(payment.id) ?? null])),
      raced,
    };
  });
}

/** Returns the earliest attempt of each payment. */
function keepOnePerPayment(attempts: readonly AttemptWithContext[]): AttemptWithContext[] {
  const inOrder = attempts.toSorted((a, b) => a.attempt.created_at.getTime() - b.attempt.created_at.getTime());
  return [...new Map(inOrder.toReversed().map((whole) => [whole.payment.id, whole])).values()];
}

/** Locks payments, attempts and payers. Returns the attempts that still wait: another worker may have verified the others. */
async function lockAttempts(
  db: Db,
  outcomes: Outcomes,
  attempts: readonly AttemptWithContext[],
): Promise<AttemptWithContext[]> {
  const locked = await lockForAcceptance(db, {
    paymentIds: attempts.map(({ payment }) => payment.id),
    attemptIds: attempts.map(({ attempt }) => attempt.id),
    payers: attempts.filter((whole) => isCompared(outcomes, whole)).map(({ option }) => option),
    lockWaitMs: LOCK_WAIT_MS,
  });
  const waiting = new Set(locked);
  return attempts.filter(({ attempt }) => waiting.has(attempt.id));
}

/** Moves the attempts' payments to `processing`. Returns the attempts whose payments moved. */
async function movePayments(db: Db, attempts: readonly AttemptWithContext[], at: Date): Promise<AttemptWithContext[]> {
  const verified = attempts.map(({ attempt, payment, option }) => ({ id: payment.id, attemptId: attempt.id, option }));
  const moved = new Set(await moveToProcessing(db, verified, at));
  return attempts.filter(({ payment }) => moved.has(payment.id));
}

/** Moves the payments of test mode to `succeeded`: test mode moves no money (specification, part 1 and 2.2). */
async function succeedInTestMode(db: Db, accepted: readonly AttemptWithContext[], at: Date): Promise<void> {
  for (const { payment, option } of accepted) {
    if (payment.mode !== "test") continue;
    const set = { tx_id: `test:${payment.id}`, paid_asset: option.asset, paid_amount: option.amount, fee: option.fee };
    await moveRows(db, "payment", { ids: [payment.id], from: "processing", to: "succeeded", at, set });
  }
}
