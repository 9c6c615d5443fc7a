import { createHash } from "node:crypto";
import { type AttemptRow, findAttempt, findAttemptByDigest, insertAttempt, isOpenedByChain } from "../db/attempts.ts";
import { moveRows } from "../db/moves.ts";
import { findOption, type OptionRow } from "../db/options.ts";
import { findPayment, type PaymentRow } from "../db/payments.ts";
import type { Mode } from "../db/tables.ts";
import { type CollectedField, findCollectedFault, hasCollected, keepCollected } from "./collect.ts";
import { type PaymentDeps, RING_AGAIN_MS } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import { lendSignatures } from "./lend.ts";
import { findClosed } from "./options.ts";
import { findResultsFault, type WalletResult } from "./results.ts";

export type Confirm = {
  paymentId: string;
  mode: Mode;
  optionId: string;
  results: readonly WalletResult[];
  /** What the buyer says of himself, where the wallet asked for it itself; kept for so long, milliseconds. */
  collected?: { fields: readonly CollectedField[]; keepMs: number } | undefined;
};

/**
 * Takes a confirm: cheap checks, then the attempt is written and its verification rung. Gives the attempt to wait for,
 * or null when there is nothing to wait for and the present status is the answer: the same confirm again, in any state.
 * Refuses with `payment_not_found`, `invalid_params`, `payment_expired`, and `invalid_state` for a second, different
 * confirm once a payment is being paid. Nothing that is refused here changes the payment.
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
  if (before)
    return done({ attemptId: payment.state === "requires_action" ? await resume(deps, payment, before) : null });
  const closed = findClosed(payment, deps.now());
  if (closed) {
    // The money of this very option has come by itself: its wallet is told how the payment stands.
    const isPaying = payment.option_id === args.optionId && (await isOpenedByChain(deps.db, payment.id));
    if (!isPaying) return closed;
    const paying = await findOption(deps.db, { id: args.optionId, paymentId: payment.id });
    if (paying && findResultsFault(paying, args.results) === undefined)
      await lendSignatures(deps, paying, args.results);
    return done({ attemptId: null });
  }
  if (!option) return refuse("invalid_params", "optionId: is not an option of this payment");
  if (option.expires_at && option.expires_at <= deps.now())
    return refuse("quote_expired", "the option's quote has expired");
  const fault = findResultsFault(option, args.results);
  if (fault) return refuse("invalid_params", fault);

  const incomplete = await findMissingData(deps, option, args.collected);
  if (incomplete) return refuse("invalid_params", incomplete);

  const now = deps.now();
  const id = newId("att");
  const attempt = {
    id,
    payment_id: payment.id,
    option_id: option.id,
    digest,
    results: JSON.stringify(args.results),
    state: "waiting",
    refusal: null,
    created_at: now,
    due_at: new Date(now.getTime() + RING_AGAIN_MS),
  } as const;
  if (!(await writeAttempt(deps, attempt, option, args.collected))) {
    const twin = await findAttemptByDigest(deps.db, { paymentId: payment.id, digest });
    return done({ attemptId: twin?.id ?? null });
  }
  await deps.ring("verify-signature", [{ data: { attemptIds: [id] } }]);
  return done({ attemptId: id });
}

/** Nothing is kept of a buyer who was not asked: data nobody needs can only be lost. */
async function writeAttempt(
  deps: PaymentDeps,
  attempt: Parameters<typeof insertAttempt>[1],
  option: OptionRow,
  collected: Confirm["collected"],
): Promise<boolean> {
  if (!option.needs_data || !collected) return insertAttempt(deps.db, attempt);
  const { fields, keepMs } = collected;
  return deps.db.transaction().execute(async (db) => {
    await keepCollected({ ...deps, db }, { option, fields, deleteAt: new Date(deps.now().getTime() + keepMs) });
    return insertAttempt(db, attempt);
  });
}

/** What an option lacks of its buyer's data; undefined when it needs none, or has it. */
async function findMissingData(
  deps: PaymentDeps,
  option: OptionRow,
  collected: Confirm["collected"],
): Promise<string | undefined> {
  if (!option.needs_data) return undefined;
  if (collected) return findCollectedFault(collected.fields, deps.now());
  if (await hasCollected(deps.db, option)) return undefined;
  return "collectedData: this option needs data of the buyer, as its collectData says";
}

/**
 * The same confirm again while the payment waits: a refused one is verified anew, the buyer may have topped up since. Not
 * after the deadline: the row's time would make it one that came before.
 */
async function resume(deps: PaymentDeps, payment: PaymentRow, attempt: AttemptRow): Promise<string> {
  const now = deps.now();
  if (attempt.state !== "refused" || payment.expires_at <= now) return attempt.id;
  const moved = await deps.db.transaction().execute((db) =>
    moveRows(db, "attempt", {
      ids: [attempt.id],
      from: "refused",
      to: "waiting",
      at: now,
      set: { refusal: null, due_at: new Date(now.getTime() + RING_AGAIN_MS), due_try: attempt.due_try + 1 },
    }),
  );
  if (moved.length > 0)
    await deps.ring("verify-signature", [{ data: { attemptIds: [attempt.id] }, again: attempt.due_try + 1 }]);
  return attempt.id;
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
