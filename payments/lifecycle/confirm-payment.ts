import { createHash } from "node:crypto";
import { moveRows } from "../../db/moves.ts";
import {
  type AttemptHead,
  findAttempt,
  findAttemptByDigest,
  findAttemptOpenedByTransfer,
  findAttemptPaidIn,
  findLastMove,
  insertKeyAttempt,
  type NewAttempt,
} from "../../db/queries/attempts.ts";
import { type CurrentOption, findOption, type OptionRow } from "../../db/queries/payment-options.ts";
import { findPayment, type PaymentQuery, type PaymentRow } from "../../db/queries/payments.ts";
import type { Db, Verification } from "../../db/tables.ts";
import { runAlongside, type WaitForOthers } from "../../runtime/alongside.ts";
import { currentTrace } from "../../runtime/tracing/spans.ts";
import { REVERTED } from "../../transfers/refusal-reasons.ts";
import { checkSignature } from "../../transfers/verifier.ts";
import { attachData, type BuyerDataDeps, type CollectedData, findGivenData } from "../buyer-data/collected-data.ts";
import { done, type Refusal, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import { findClosedRefusal } from "../options/list-options.ts";
import { findQuoteRefusal, isSameTransfer } from "../options/quotes.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";
import type { Requester } from "../requester.ts";
import { admitAttempt } from "./admit-attempt.ts";
import { attachSignatures } from "./attach-authorizations.ts";
import { verifyQueueOf } from "./verify-queue.ts";
import { readResults, readSigned, validateResults, type WalletResult } from "./wallet-results.ts";

export type Confirm = PaymentQuery & {
  optionId: string;
  results: readonly WalletResult[];
  /** The requester that confirms. Buyer data that it has posted before is attached to the confirm. */
  requester: Requester;
  /** Buyer data that the wallet has collected itself. */
  collected?: CollectedData | undefined;
  /** Settles when the caller has learned of the result; confirms until then share the next job. */
  ended?: Promise<unknown> | undefined;
};

type Deps = PaymentDeps & BuyerDataDeps;

/** The attempt to wait for, or null when the payment's current status is the response. */
type Accepted = Result<{ attemptId: string | null }>;

/**
 * Accepts a confirm: runs cheap checks, writes the attempt and enqueues its verification. Returns the attempt to wait
 * for, or null when the current status is the response: a repeated confirm of a payment that no longer waits.
 *
 * Refuses with `payment_not_found`, `invalid_params` (also an attempt that stays refused), `payment_expired`, `quote_expired`, with
 * `invalid_state` for a different confirm once the payment is being paid, and with `rate_limited` while too many confirms wait or were
 * refused. Confirms of other payers never block a valid signature of a payer's key. A refusal never changes the
 * payment.
 */
export function acceptConfirm(deps: Deps, args: Confirm): Promise<Accepted> {
  return runAlongside(deps.db, (arrive) => accept(deps, args, arrive));
}

async function accept(deps: Deps, args: Confirm, arrive: () => WaitForOthers): Promise<Accepted> {
  const digest = createHash("sha256")
    .update(JSON.stringify([args.optionId, args.results]))
    .digest();
  const { paymentId } = args;
  const [payment, early, option] = await Promise.all([
    findPayment(deps.db, args),
    findAttemptByDigest(deps.db, { paymentId, digest }),
    findOption(deps.db, { id: args.optionId, paymentId }),
  ]);
  if (!payment) return refuse("payment_not_found", "no such payment");
  const closed = findClosedRefusal(payment, deps.now());
  // The reads above have snapshots of their own: the same confirm, sent twice, may have paid between them.
  const before = early ?? (closed && (await findAttemptByDigest(deps.db, { paymentId, digest })));
  if (before) return repeatConfirm(deps, args, { payment, option, before });
  if (closed) return joinUnsolicited(deps, args, { payment, option, closed });
  if (!option) return refuse("invalid_params", "optionId: is not an option of this payment");
  const refusal = findOptionRefusal(deps, option, args);
  if (refusal) return refusal;
  return createAttempt(deps, args, { payment, option, digest, arrive });
}

/** Handles a confirm whose attempt is stored already. */
async function repeatConfirm(
  deps: Deps,
  args: Confirm,
  { payment, option, before }: { payment: PaymentRow; option: CurrentOption | undefined; before: AttemptHead },
): Promise<Accepted> {
  const waits = payment.state === "requires_action";
  if (option && (waits || before.state === "verified")) {
    const error = await addData(deps, { attempt: before, option, deadline: payment.expires_at }, args);
    if (error) return refuse("invalid_params", error);
  }
  return waits ? resume(deps, payment, { attempt: before, option }) : done({ attemptId: null });
}

/**
 * Handles a new confirm of a payment that accepts none any more: the wallet gets the payment's status when an unsolicited payment by
 * the same option has opened it, or by a renewal of it that asks for the same transfer.
 */
async function joinUnsolicited(
  deps: Deps,
  args: Confirm,
  { payment, option, closed }: { payment: PaymentRow; option: CurrentOption | undefined; closed: Refusal },
): Promise<Accepted> {
  const { paymentId } = args;
  const paying = option && payment.option_id && (await findOption(deps.db, { id: payment.option_id, paymentId }));
  if (!option || !paying || !isSameTransfer(option, paying)) return closed;
  const opened = (await findAttemptOpenedByTransfer(deps.db, paymentId)) ?? (await findPaidPush(deps, option, args));
  if (opened === undefined) return closed;
  if (validateResults(option, args.results) === undefined) {
    // The payer's signature is public on chain by now, so it does not prove who sent the data.
    const late = { attempt: { id: opened }, option: paying, deadline: payment.expires_at, isProof: false };
    const error = await addData(deps, late, args);
    if (error) return refuse("invalid_params", error);
    // The transfer is stored with the end of the quote that it was booked by, and a signature for another end is invalid.
    if (option.valid_before === paying.valid_before) await attachSignatures(deps, option, args.results);
  }
  return done({ attemptId: null });
}

/** Returns why an option cannot be confirmed with these results: it has ended, or the results do not fit. */
function findOptionRefusal(deps: PaymentDeps, option: CurrentOption, { results }: Confirm): Refusal | undefined {
  const ended = findQuoteRefusal(deps, option);
  if (ended) {
    if (option.kind === "push") logLatePush(deps, option, results);
    return ended;
  }
  if (option.blockhash_until && option.blockhash_until <= deps.now())
    return refuse("quote_expired", "the option's blockhash has expired; fetch its actions again");
  const error = validateResults(option, results);
  return error === undefined ? undefined : refuse("invalid_params", error);
}

/** Writes the attempt with the buyer's data and enqueues its verification. */
async function createAttempt(
  deps: Deps,
  args: Confirm,
  {
    payment,
    option,
    digest,
    arrive,
  }: { payment: PaymentRow; option: CurrentOption; digest: Buffer; arrive: () => WaitForOthers },
): Promise<Accepted> {
  const found = option.needs_data ? await findGivenData(deps, option, args) : done(undefined);
  if (!found.ok) return found;
  const given = found.value;
  if (option.needs_data && !given)
    return refuse("invalid_params", "collectedData: this option needs data of the buyer, as its collectData says");

  const now = deps.now();
  const of = { option, deadline: payment.expires_at };
  const attempt: NewAttempt = {
    id: newId("att", now),
    payment_id: payment.id,
    option_id: option.id,
    digest,
    results: args.results,
    traceparent: currentTrace() ?? null,
    verification: chooseVerification(deps, option, args.results),
    created_at: now,
    due_at: new Date(now.getTime() + REENQUEUE_AFTER_MS),
  };
  const keep = given && ((db: Db) => attachData({ ...deps, db }, { attemptId: attempt.id, ...of, given }));
  const written = await writeAttempt(deps, attempt, keep);
  if (written !== true) {
    const twin = await findAttemptByDigest(deps.db, { paymentId: payment.id, digest });
    if (twin) await addData(deps, { attempt: twin, ...of }, args);
    if (twin || written === false) return done({ attemptId: twin?.id ?? null });
    const { retryAfterSeconds } = written;
    const message = `too many confirms of this payment wait or were refused; retry in ${retryAfterSeconds} s`;
    return refuse("rate_limited", message, retryAfterSeconds);
  }
  const batching = { ended: args.ended, others: arrive() };
  await deps.enqueue(verifyQueueOf(attempt), [
    { data: { chain: option.chain, attemptIds: [attempt.id] }, ...batching },
  ]);
  return done({ attemptId: attempt.id });
}

/**
 * Returns the attempt of a payment that the confirmed push has paid. Another confirm may have waited when the money arrived: one
 * with an invented hash, or with that of a transaction that the wallet has replaced.
 */
async function findPaidPush(deps: PaymentDeps, option: OptionRow, args: Confirm): Promise<string | undefined> {
  if (option.kind !== "push" || validateResults(option, args.results) !== undefined) return undefined;
  const txHash = readResults(args.results).proof.toLowerCase();
  return findAttemptPaidIn(deps.db, { paymentId: args.paymentId, txHash });
}

/** Logs a push that came too late. The money moves anyway, and the log line helps to find it. */
function logLatePush(deps: PaymentDeps, option: CurrentOption, results: readonly WalletResult[]): void {
  if (validateResults(option, results) !== undefined) return;
  const { payment_id: payment, id, receiver } = option;
  const fields = { payment, option: id, receiver, tx: readResults(results).proof };
  deps.log.warn(fields, "wallet sent a transaction for an option that has ended");
}

/** Chooses how a confirm is verified. A signature that is not a valid key signature may be a contract wallet's. */
function chooseVerification(deps: PaymentDeps, option: OptionRow, results: readonly WalletResult[]): Verification {
  if (option.kind === "push") return "push";
  return checkSignature(deps.chains, readSigned(option, results)).ok ? "key" : "wallet";
}

/** The response when an option has too many confirms with valid key signatures. */
const KEY_LIMIT = { retryAfterSeconds: 60 };

/**
 * Writes an attempt. Returns true when it was written, false when the same confirm is stored already, or else when to
 * retry.
 * @param keep stores the buyer's data with the attempt; unset when no data is needed, so that none can leak
 */
async function writeAttempt(
  deps: PaymentDeps,
  attempt: NewAttempt,
  keep: ((db: Db) => Promise<void>) | undefined,
): Promise<boolean | { retryAfterSeconds: number }> {
  const write = async (db: Db) => {
    if (attempt.verification === "key") return (await insertKeyAttempt(db, attempt)) || KEY_LIMIT;
    const admitted = await admitAttempt(db, attempt);
    return "written" in admitted ? admitted.written : admitted;
  };
  if (!keep && attempt.verification === "key") return write(deps.db);
  return deps.db.transaction().execute(async (db) => {
    const written = await write(db);
    if (written === true) await keep?.(db);
    return written;
  });
}

/**
 * Replaces the data of an attempt that is not verified yet: a repeated confirm may bring other data, or its requester
 * may have posted some meanwhile. Returns the data's error, or undefined.
 */
async function addData(
  deps: Deps,
  of: { attempt: { id: string }; option: OptionRow; deadline: Date; isProof?: boolean },
  args: Confirm,
): Promise<string | undefined> {
  const { attempt, ...rest } = of;
  const found = of.option.needs_data ? await findGivenData(deps, of.option, args) : done(undefined);
  if (!found.ok) return found.message;
  const given = found.value;
  if (!given) return undefined;
  await deps.db.transaction().execute((db) => attachData({ ...deps, db }, { attemptId: attempt.id, ...rest, given }));
  return undefined;
}

/** A repeated confirm is verified again at once this many times; after that, it must wait, milliseconds. */
const RESUMED_AT_ONCE = 3;
const RESUMED_AFTER_MS = 10_000;

/**
 * Handles a repeated confirm while the payment waits. A refused attempt is verified again, because the buyer may have
 * topped up. It is not verified again after the deadline, where its row's creation time would count as in time, nor
 * after its quote has ended, so that the buyer cannot wait for a favourable price. An attempt that stays refused is
 * refused at once, because no result will come.
 */
async function resume(
  deps: PaymentDeps,
  payment: PaymentRow,
  { attempt, option }: { attempt: AttemptHead; option: CurrentOption | undefined },
): Promise<Result<{ attemptId: string }>> {
  const now = deps.now();
  const waiting = done({ attemptId: attempt.id });
  if (attempt.state !== "refused") return waiting;
  if (payment.expires_at <= now) return toRefusal(attempt);
  const ended = option && findQuoteRefusal(deps, option);
  if (ended) return ended;
  if (attempt.due_retries >= RESUMED_AT_ONCE) {
    const refusedAt = await findLastMove(deps.db, attempt.id);
    if (refusedAt && now.getTime() - refusedAt.getTime() < RESUMED_AFTER_MS) return toRefusal(attempt);
  }
  const retry = attempt.due_retries + 1;
  const moved = await deps.db.transaction().execute((db) =>
    moveRows(db, "attempt", {
      ids: [attempt.id],
      from: "refused",
      to: "waiting",
      at: now,
      set: { refusal: null, due_at: new Date(now.getTime() + REENQUEUE_AFTER_MS), due_retries: retry },
    }),
  );
  if (moved.length > 0)
    await deps.enqueue(verifyQueueOf(attempt), [{ data: { chain: attempt.chain, attemptIds: [attempt.id] }, retry }]);
  return waiting;
}

/**
 * Returns the verification result of an attempt, or `waiting`. An attempt that no longer exists was refused: while
 * a payment can be paid, only refused ones are deleted, by later confirms and by the cleanup.
 */
export async function findVerificationResult(
  deps: Pick<PaymentDeps, "db">,
  attemptId: string,
): Promise<"waiting" | "verified" | { refused: string }> {
  const attempt = await findAttempt(deps.db, attemptId);
  if (!attempt || attempt.state === "refused") return { refused: toRefusal(attempt ?? { refusal: null }).message };
  return attempt.state;
}

const toRefusal = ({ refusal }: Pick<AttemptHead, "refusal">) =>
  refuse("invalid_params", refusal ?? "the authorization was refused");

/** Returns true for the refusal of a confirm whose transaction was included but reverted: the buyer may pay again. */
export function isReverted(refusal: Refusal): boolean {
  return refusal.message === REVERTED;
}
