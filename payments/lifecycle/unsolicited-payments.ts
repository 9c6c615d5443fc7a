import { createHash } from "node:crypto";
import type { TokenMovement } from "../../chains/token-movement.ts";
import { moveRows } from "../../db/moves.ts";
import { findWaitingAttemptOf, insertAttempt, listKeyResults, lockWaitingOf } from "../../db/queries/attempts.ts";
import { attachToOpenedAttempt } from "../../db/queries/collected-data.ts";
import { lockPaidQuotes, type OptionRow } from "../../db/queries/payment-options.ts";
import type { TransferSignatures } from "../../db/queries/payment-transfers.ts";
import { insertTransfers, lockUnassigned, type UnassignedTransfer } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { readSignatures } from "./attach-authorizations.ts";
import { findPaidQuotes } from "./paid-quotes.ts";
import { toTransfer } from "./payment-transfer.ts";
import { replaceUnsent } from "./replace-unsent.ts";

/**
 * Books unsolicited payments: money that names a payment whose buyer has not confirmed. Either another relayer has
 * submitted the buyer's signature, or the buyer's wallet has pushed the money without a confirm. Each such payment gets
 * an attempt and moves to `processing`, by the quote that the money matches.
 *
 * Runs in the transaction that records or books the movements. The payments' rows stay locked in it, so that a concurrent
 * confirm runs entirely before or after.
 *
 * Money that is final (`isFinal`) also pays a payment whose accepted transfer was never sent, and the transfer ends.
 *
 * The payment takes the money if it moved in time by the chain's clock, however late the watcher reads it, or if its
 * confirm was accepted in time. Later money becomes an exception.
 */
export async function openUnsolicitedPayments(
  deps: PaymentDeps,
  db: Db,
  chain: string,
  movements: readonly TokenMovement[],
  { isFinal } = { isFinal: false },
): Promise<() => void> {
  const money = movements.flatMap(({ authorizationNonce, token, payer, receiver, amount }) =>
    authorizationNonce === null ? [] : [{ authorization_nonce: authorizationNonce, token, payer, receiver, amount }],
  );
  const nonces = money.map(({ authorization_nonce }) => authorization_nonce);
  // Lock order: transfers, then payments, as where transfers are confirmed or ended (avoids deadlock).
  await lockUnassigned(db, nonces);
  const locked = await lockPaidQuotes(db, { chain, money });
  // Again, because a confirm may have been accepted while this waited for its payment.
  const unassigned = await lockUnassigned(db, nonces);
  const quotes = await findPaidQuotes(deps, db, { movements, quotes: locked });
  // Lock all attempts at once, ordered by id, before any of them is changed (avoids deadlock).
  await lockWaitingOf(
    db,
    quotes.map(({ payment_id }) => payment_id),
  );
  const at = deps.now();
  const opened: OptionRow[] = [];
  const replaced: UnassignedTransfer[] = [];
  for (const option of quotes) {
    const set = { due_at: null, option_id: option.id, asset: option.asset };
    const ids = [option.payment_id];
    const moved = await moveRows(db, "payment", { ids, from: "requires_action", to: "processing", at, set });
    if (moved.length === 0) {
      const ended = isFinal && (await replaceUnsent(db, option, { unassigned, at }));
      if (!ended) continue;
      replaced.push(ended);
    }
    const signatures = await findSignatures(deps, db, option);
    await openAttempt(db, option, at);
    await insertTransfers(db, [{ ...toTransfer(option, at), ...signatures, state: "awaited", due_at: null }], at);
    opened.push(option);
  }
  return () => {
    if (opened.length === 0) return;
    deps.log.info({ chain, payments: opened.map((one) => one.payment_id) }, "unsolicited payments received");
    for (const { kind } of opened) deps.metrics.attempts.inc({ outcome: "verified", kind });
    const count = opened.length - replaced.length;
    deps.metrics.paymentTransitions.inc({ mode: "live", from: "requires_action", to: "processing" }, count);
    for (const { chain: of, payment_id: payment } of replaced) {
      deps.metrics.transferTransitions.inc({ chain: of, purpose: "payment", from: "ready", to: "ended" });
      deps.log.warn({ chain, payment }, "money has paid a payment whose accepted transfer was never sent");
    }
    void deps.publishPaymentChanges(opened.map((one) => one.payment_id));
  };
}

/**
 * Returns the signatures of a stored confirm of the option, if there is one: it waits, or was refused because its
 * authorization was used. They allow us to relay the transfer again after a reorg.
 */
async function findSignatures(deps: PaymentDeps, db: Db, option: OptionRow): Promise<TransferSignatures | undefined> {
  for (const results of await listKeyResults(db, option)) {
    const signatures = readSignatures(deps, option, results);
    if (signatures) return signatures;
  }
  return undefined;
}

/** Marks the option's waiting attempt as verified, or writes a verified attempt when none waits. */
async function openAttempt(db: Db, option: OptionRow, at: Date): Promise<void> {
  const waiting = await findWaitingAttemptOf(db, option);
  const id = waiting?.id ?? newId("att", at);
  if (!waiting) {
    const digest = createHash("sha256").update(`unsolicited ${option.id}`).digest();
    const { payment_id, id: option_id } = option;
    const row = { id, payment_id, option_id, digest, results: "[]", refusal: null, created_at: at, due_at: null };
    await insertAttempt(db, { ...row, state: "waiting" });
  }
  await moveRows(db, "attempt", { ids: [id], from: "waiting", to: "verified", at, set: { due_at: null } });
  // For a contract wallet, the wallet's code was never asked whether this confirm is the payer's, and no longer will
  // be.
  if (option.needs_data)
    await attachToOpenedAttempt(db, { attempt: { id, isProved: waiting?.verification !== "wallet" }, option });
}
