import { createHash } from "node:crypto";
import {
  type AttemptHead,
  findAttempt,
  findAttemptByDigest,
  findLastMove,
  findOpenedByChain,
  insertKeyAttempt,
  type NewAttempt,
} from "../db/attempts.ts";
import { moveRows } from "../db/moves.ts";
import { type CurrentOption, findOption, type OptionRow } from "../db/options.ts";
import { findPayment, type PaymentRow } from "../db/payments.ts";
import type { Db, Mode, Verification } from "../db/tables.ts";
import { REVERTED } from "../transfers/push.ts";
import { checkSignature } from "../transfers/verify.ts";
import { admitAttempt } from "./admission.ts";
import { type CollectedField, findCollectedFault, findGiven, keepWithAttempt } from "./collect.ts";
import { type PaymentDeps, RING_AGAIN_MS } from "./deps.ts";
import { done, type Refusal, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import { lendSignatures } from "./lend.ts";
import { findClosed } from "./options.ts";
import { findQuoteEnd, movesTheSame } from "./quotes.ts";
import type { Requester } from "./requester.ts";
import { findResultsFault, readResults, type WalletResult } from "./results.ts";
import { verifyQueueOf } from "./verify-queue.ts";

export type Confirm = {
  paymentId: string;
  mode: Mode;
  optionId: string;
  results: readonly WalletResult[];
  /** Whose confirm it is, of those who requested options: what they posted of the buyer's data comes with it. */
  requester: Requester;
  /** What the buyer says, where the wallet asked for it itself; kept for so long, milliseconds. */
  collected?: { fields: readonly CollectedField[]; keepMs: number } | undefined;
};

/**
 * Takes a confirm: cheap checks, then the attempt is written and its verification rung. Gives the attempt to wait for,
 * or null when there is nothing to wait for and the present status is the answer: the same confirm again, in any state.
 * Refuses with `payment_not_found`, `invalid_params`, `payment_expired`, and `invalid_state` for a second, different
 * confirm once a payment is being paid, `quote_expired`, and `rate_limited` while too many wait or were refused; a good signature of the
 * payer's key is not kept out by those of others. Nothing that is refused here changes the payment.
 */
export async function acceptConfirm(deps: PaymentDeps, args: Confirm): Promise<Result<{ attemptId: string | null }>> {
  const digest = createHash("sha256")
    .update(JSON.stringify([args.optionId, args.results]))
    .digest();
  const { paymentId } = args;
  const [payment, before, option] = await Promise.all([
    findPayment(deps.db, { id: paymentId, mode: args.mode }),
    findAttemptByDigest(deps.db, { paymentId, digest }),
    findOption(deps.db, { id: args.optionId, paymentId }),
  ]);
  if (!payment) return refuse("payment_not_found", "no such payment");
  if (before) {
    const waits = payment.state === "requires_action";
    if (option && (waits || before.state === "verified")) {
      const fault = await addData(deps, { attempt: before, option, deadline: payment.expires_at }, args);
      if (fault) return refuse("invalid_params", fault);
    }
    return waits ? resume(deps, payment, { attempt: before, option }) : done({ attemptId: null });
  }
  const closed = findClosed(payment, deps.now());
  if (closed) {
    // The money of this very option has come by itself: its wallet is told how the payment stands.
    const paying = option && payment.option_id && (await findOption(deps.db, { id: payment.option_id, paymentId }));
    if (!option || !paying || !movesTheSame(option, paying)) return closed;
    const opened = await findOpenedByChain(deps.db, paymentId);
    if (opened === undefined) return closed;
    if (findResultsFault(option, args.results) === undefined) {
      // What the payer signed stands on chain by now, so it does not prove whose the data is.
      const late = { attempt: { id: opened }, option: paying, deadline: payment.expires_at, isProof: false };
      const fault = await addData(deps, late, args);
      if (fault) return refuse("invalid_params", fault);
      await lendSignatures(deps, option, args.results);
    }
    return done({ attemptId: null });
  }
  if (!option) return refuse("invalid_params", "optionId: is not an option of this payment");
  const ended = findQuoteEnd(deps, option);
  if (ended) {
    if (option.kind === "push") logLatePush(deps, option, args.results);
    return ended;
  }
  if (option.blockhash_until && option.blockhash_until <= deps.now())
    return refuse("quote_expired", "the option's blockhash has expired; fetch its actions again");
  const fault = findResultsFault(option, args.results);
  if (fault) return refuse("invalid_params", fault);

  const given = option.needs_data ? await findGiven(deps, option, args) : undefined;
  const incomplete = option.needs_data ? findDataFault(deps, given) : undefined;
  if (incomplete) return refuse("invalid_params", incomplete);

  const now = deps.now();
  const of = { option, deadline: payment.expires_at };
  const attempt: NewAttempt = {
    ...{ id: newId("att"), payment_id: payment.id, option_id: option.id, digest, results: args.results },
    verification: chooseVerification(deps, option, args.results),
    ...{ created_at: now, due_at: new Date(now.getTime() + RING_AGAIN_MS) },
  };
  const keep = given && ((db: Db) => keepWithAttempt({ ...deps, db }, { attemptId: attempt.id, ...of, given }));
  const written = await writeAttempt(deps, attempt, keep);
  if (written !== true) {
    const twin = await findAttemptByDigest(deps.db, { paymentId: payment.id, digest });
    if (twin) await addData(deps, { attempt: twin, ...of }, args);
    if (twin || written === false) return done({ attemptId: twin?.id ?? null });
    const { retryAfterSeconds } = written;
    const message = `too many confirms of this payment wait or were refused; again in ${retryAfterSeconds} s`;
    return { ...refuse("rate_limited", message), retryAfterSeconds };
  }
  await deps.ring(verifyQueueOf(attempt), [{ data: { attemptIds: [attempt.id] } }]);
  return done({ attemptId: attempt.id });
}

/** The money of a push is on its way all the same: this says where to look for it. */
function logLatePush(deps: PaymentDeps, option: CurrentOption, results: readonly WalletResult[]): void {
  if (findResultsFault(option, results) !== undefined) return;
  const { payment_id: payment, id, receiver } = option;
  const facts = { payment, option: id, receiver, tx: readResults(results).proof };
  deps.log.warn(facts, "a wallet has sent a transaction for an option that has ended");
}

/** Who can say whether a confirm is the payer's. A signature that is no good one of a key may be a contract wallet's. */
function chooseVerification(deps: PaymentDeps, option: OptionRow, results: readonly WalletResult[]): Verification {
  if (option.kind === "push") return "push";
  return checkSignature(deps.chains, { ...option, ...readResults(results) }).ok ? "key" : "wallet";
}

/** A payer's own confirms with good signatures are too many. */
const KEY_AGAIN = { retryAfterSeconds: 60 };

/**
 * True when the attempt was written, false when the same confirm was before; else when to come again.
 * @param keep keeps the buyer's data with it. Unset for a buyer who was not asked: data nobody needs can only be lost
 */
async function writeAttempt(
  deps: PaymentDeps,
  attempt: NewAttempt,
  keep: ((db: Db) => Promise<void>) | undefined,
): Promise<boolean | { retryAfterSeconds: number }> {
  const write = async (db: Db) => {
    if (attempt.verification === "key") return (await insertKeyAttempt(db, attempt)) || KEY_AGAIN;
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

/** What an option that needs its buyer's data lacks of it; undefined when it is whole. */
function findDataFault(deps: PaymentDeps, given: { fields: readonly CollectedField[] } | undefined) {
  if (given) return findCollectedFault(given.fields, deps.now());
  return "collectedData: this option needs data of the buyer, as its collectData says";
}

/**
 * A confirm that is repeated may bring other data than before, or its requester has posted some meanwhile: it replaces what
 * the attempt has, until that is verified. Returns what is wrong with the data.
 */
async function addData(
  deps: PaymentDeps,
  of: { attempt: { id: string }; option: OptionRow; deadline: Date; isProof?: boolean },
  args: Confirm,
): Promise<string | undefined> {
  const { attempt, ...rest } = of;
  const given = of.option.needs_data ? await findGiven(deps, of.option, args) : undefined;
  if (!given) return undefined;
  const fault = findDataFault(deps, given);
  if (fault) return fault;
  await deps.db
    .transaction()
    .execute((db) => keepWithAttempt({ ...deps, db }, { attemptId: attempt.id, ...rest, given }));
  return undefined;
}

/** A refused confirm that is repeated is verified anew at once so often; then it has to wait, milliseconds. */
const RESUMED_AT_ONCE = 3;
const RESUMED_AFTER_MS = 10_000;

/**
 * The same confirm again while the payment waits: a refused one is verified anew, the buyer may have topped up since. Not
 * after the deadline: the row's time would make it one that came before. Nor after its quote has ended: the buyer would
 * choose when its price is good.
 */
async function resume(
  deps: PaymentDeps,
  payment: PaymentRow,
  { attempt, option }: { attempt: AttemptHead; option: CurrentOption | undefined },
): Promise<Result<{ attemptId: string }>> {
  const now = deps.now();
  const waiting = done({ attemptId: attempt.id });
  if (attempt.state !== "refused" || payment.expires_at <= now) return waiting;
  const ended = option && findQuoteEnd(deps, option);
  if (ended) return ended;
  if (attempt.due_try >= RESUMED_AT_ONCE) {
    const refusedAt = await findLastMove(deps.db, attempt.id);
    if (refusedAt && now.getTime() - refusedAt.getTime() < RESUMED_AFTER_MS) return waiting;
  }
  const again = attempt.due_try + 1;
  const moved = await deps.db.transaction().execute((db) =>
    moveRows(db, "attempt", {
      ids: [attempt.id],
      from: "refused",
      to: "waiting",
      at: now,
      set: { refusal: null, due_at: new Date(now.getTime() + RING_AGAIN_MS), due_try: again },
    }),
  );
  if (moved.length > 0) await deps.ring(verifyQueueOf(attempt), [{ data: { attemptIds: [attempt.id] }, again }]);
  return waiting;
}

/** What verification has said of an attempt so far. */
export async function findVerdict(
  deps: Pick<PaymentDeps, "db">,
  attemptId: string,
): Promise<"waiting" | "verified" | { refused: string }> {
  const attempt = await findAttempt(deps.db, attemptId);
  if (!attempt) throw new Error(`attempt ${attemptId} is not there`);
  if (attempt.state === "refused") return { refused: attempt.refusal ?? "the authorization was refused" };
  return attempt.state;
}

/** True for the refusal of a confirm whose transaction is in a block and has moved nothing: its buyer may pay again. */
export function isReverted(refusal: Refusal): boolean {
  return refusal.message === REVERTED;
}
