import { commitIfOk } from "../db/in-transaction.ts";
import { moveRows } from "../db/moves.ts";
import type { ObservationRow } from "../db/queries/observations.ts";
import { assignObservation, listUsedNonces, lockMovementByNonce } from "../db/queries/payout-nonces.ts";
import { wakeShortPayouts } from "../db/queries/payout-queue.ts";
import { holdTransfer, type TransferRow } from "../db/queries/transfers.ts";
import type { Db } from "../db/tables.ts";
import { holdUnprocessable } from "./hold-unprocessable.ts";
import { moveBookings } from "./move-bookings.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Books a payout that the chain shows as already paid, in the database transaction that adopts it. Resolves the exception
 * that the movement was booked as, and changes the settlement or refund to the amount that moved. Returns the new amount of
 * the payout in minor units, or undefined when an operator must compare the two.
 */
export type BookAdopted = (db: Db, transfer: TransferRow, movement: ObservationRow) => Promise<bigint | undefined>;

/**
 * Returns the payouts that the chain does not show as paid, and adopts or holds the others. When the treasury has moved
 * tokens with a payout's nonce, a restored database has lost the payout, and it must not be sent again. This holds for
 * any amount and receiver, and also when the movement is booked as an exception. A payout whose adoption throws is held,
 * and the other transfers of the batch continue.
 * @param rows ready transfers out of the treasury
 */
export async function keepUnpaidPayouts<Row extends TransferRow>(
  deps: TransferDeps,
  rows: readonly Row[],
  book: BookAdopted,
): Promise<Row[]> {
  const made = await listUsedNonces(deps.db, rows);
  if (made.size === 0) return [...rows];
  for (const row of rows)
    if (made.has(row.authorization_nonce))
      await adopt(deps, row, book).catch((error: unknown) => holdUnprocessable(deps, row, error));
  return rows.filter((row) => !made.has(row.authorization_nonce));
}

/** An adopted payout with its movement and the booked amount, or one that is not adopted because an operator must decide. */
type Adoption = { ok: true; movement: ObservationRow; isExact: boolean; amount: bigint } | { ok: false };

/**
 * Adopts one payout, or holds it. A movement with another amount or receiver is adopted only when it is final and booked: a
 * movement that a reorg can revert must not change the amount of a settlement.
 */
async function adopt(deps: TransferDeps, row: TransferRow, book: BookAdopted): Promise<void> {
  const adopted = await commitIfOk(deps.db, async (db): Promise<Adoption> => {
    const movement = await lockMovementByNonce(db, row);
    if (!movement) return { ok: false };
    const isExact = movement.amount === row.amount && movement.receiver === row.receiver;
    if (!isExact && !movement.booked) return { ok: false };
    const set = { due_at: null, hold_until: null, last_error: null, lane_id: null };
    const made = { amount: movement.amount, receiver: movement.receiver, tx: movement.tx_hash };
    const detail = { adopted: { ...made, amount: String(made.amount) } };
    const move = { ids: [row.id], from: "ready" as const, to: "included" as const, at: deps.now(), detail };
    if ((await moveRows(db, "transfer", { ...move, set })).length === 0) return { ok: false };
    const booked = movement.booked || (await moveBookings(db, row.chain, [movement])).length > 0;
    const amount = await book(db, row, { ...movement, booked });
    if (amount === undefined) return { ok: false };
    await assignObservation(db, { movement, transferId: row.id, amount });
    return { ok: true, movement, isExact, amount };
  });
  if (!adopted.ok) {
    const error = "the chain shows a payout with this nonce; it is not sent again";
    deps.log.error({ transfer: row.id, chain: row.chain, error }, "payout is held");
    return holdTransfer(deps.db, { id: row.id, error, now: deps.now() });
  }
  // Until now the movement counted as money that has left, and the payout as money in transit. The wake follows the commit because it
  // locks the queues of all merchants.
  await wakeShortPayouts(deps.db, row.chain);
  const { movement, isExact, amount } = adopted;
  const facts = { transfer: row.id, chain: row.chain, tx: movement.tx_hash };
  if (isExact) deps.log.warn(facts, "payout was already made and is adopted");
  else
    deps.log.error(
      {
        ...facts,
        owed: String(row.amount),
        paid: String(movement.amount),
        booked: String(amount),
        receiver: movement.receiver,
      },
      "payout was already made with another amount or receiver and is adopted as the chain shows it",
    );
  deps.metrics.transferTransitions.inc({ chain: row.chain, purpose: row.purpose, from: "ready", to: "included" });
}
