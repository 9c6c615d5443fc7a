import { moveRows } from "../../db/moves.ts";
import { findVerifiedAttempt } from "../../db/queries/attempts.ts";
import { changeQuote } from "../../db/queries/payment-moves.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import { endUnsentTransfer } from "../../db/queries/transfer-moves.ts";
import type { UnassignedTransfer } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";

/** Why a transfer and its confirm have ended. The events and the attempt say it. */
const REPLACED = "other money has paid the payment before anything was sent";

/**
 * Makes a payment in `processing` that of another quote, because money of that quote is final, and the transfer that was
 * accepted was never sent. Otherwise a stranger with the payment's link could accept it with an authorization that fails later, and
 * keep the buyer's own transaction from paying. Ends that transfer and refuses its attempt. The payment stays `processing`.
 *
 * Returns the ended transfer, or undefined when the payment does not change: its transfer was sent or has ended, or is of the same payer
 * and token, whose second movement is the payer's own. The caller has locked the payment and its unassigned transfer
 * (`lockUnassigned`), and inserts the quote's attempt and transfer in the same transaction.
 */
export async function replaceUnsent(
  db: Db,
  option: OptionRow,
  { unassigned, at }: { unassigned: readonly UnassignedTransfer[]; at: Date },
): Promise<UnassignedTransfer | undefined> {
  const paymentId = option.payment_id;
  const held = unassigned.find(({ payment_id }) => payment_id === paymentId);
  if (!held || isSamePayer(held, option)) return undefined;
  if (!(await endUnsentTransfer(db, { id: held.id, error: REPLACED, at }))) return undefined;
  const id = await findVerifiedAttempt(db, paymentId);
  const set = { refusal: REPLACED };
  if (id) await moveRows(db, "attempt", { ids: [id], from: "verified", to: "refused", at, set });
  await changeQuote(db, { id: paymentId, option, at });
  return held;
}

/** Returns true if a quote's transfer would have the unique key of this one. */
function isSamePayer(held: UnassignedTransfer, { chain, token, payer }: OptionRow): boolean {
  return held.chain === chain && held.token === token && held.payer === payer;
}
