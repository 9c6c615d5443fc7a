import { moveRows } from "../db/moves.ts";
import { listMadeNumbers, lockMade, type SightingRow, takeSighting } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import { holdTransfer, type TransferRow } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";

/**
 * Books a payout that the chain shows as made already, in the transaction that adopts it: resolves the exception that its
 * movement was booked as, and makes the settlement or refund agree with what moved. Returns the amount of the payout from
 * now on, minor units; undefined when a person has to compare.
 */
export type AdoptedBook = (db: Db, transfer: TransferRow, movement: SightingRow) => Promise<bigint | undefined>;

/**
 * Returns the payouts that the chain does not show as made. Every other one is adopted or held: a movement of the treasury's
 * under a payout's number, whatever its amount and receiver, and also when it is booked as an exception, means that a
 * database which was restored has forgotten the payout. It must not be sent again.
 * @param rows transfers of settlements and refunds that are ready
 */
export async function dropMade<Row extends TransferRow>(
  deps: TransferDeps,
  rows: readonly Row[],
  book: AdoptedBook,
): Promise<Row[]> {
  const made = await listMadeNumbers(deps.db, rows);
  if (made.size === 0) return [...rows];
  for (const row of rows) if (made.has(row.authorization_nonce)) await adopt(deps, row, book);
  return rows.filter((row) => !made.has(row.authorization_nonce));
}

/**
 * Adopts one of them. A movement of another amount or to another receiver is adopted only when it is final and booked: what
 * the settlement comes to is not changed for something that a reorg may take back.
 */
async function adopt(deps: TransferDeps, row: TransferRow, book: AdoptedBook): Promise<void> {
  const adopted = await deps.db
    .transaction()
    .execute(async (db) => {
      const movement = await lockMade(db, row);
      if (!movement) return undefined;
      const isExact = movement.amount === row.amount && movement.receiver === row.receiver;
      if (!isExact && !movement.booked) return undefined;
      const set = { due_at: null, hold_until: null, last_trouble: null, lane_id: null };
      const made = { amount: movement.amount, receiver: movement.receiver, tx: movement.tx_hash };
      const detail = { adopted: { ...made, amount: String(made.amount) } };
      const move = { ids: [row.id], from: "ready" as const, to: "included" as const, at: deps.now(), detail };
      if ((await moveRows(db, "transfer", { ...move, set })).length === 0) return undefined;
      const amount = await book(db, row, movement);
      if (amount === undefined) throw new NotAdopted();
      await takeSighting(db, { movement, transferId: row.id, amount });
      return { movement, isExact, amount };
    })
    .catch((error: unknown) => {
      if (error instanceof NotAdopted) return undefined;
      throw error;
    });
  if (!adopted) {
    const trouble = "the chain shows a payout with this number; it is not sent again";
    deps.log.error({ transfer: row.id, chain: row.chain, trouble }, "a payout is held");
    return holdTransfer(deps.db, { id: row.id, trouble, now: deps.now() });
  }
  const { movement, isExact, amount } = adopted;
  const facts = { transfer: row.id, chain: row.chain, tx: movement.tx_hash };
  if (isExact) deps.log.warn(facts, "a payout had been made before; it is adopted");
  else
    deps.log.error(
      {
        ...facts,
        owed: String(row.amount),
        paid: String(movement.amount),
        booked: String(amount),
        receiver: movement.receiver,
      },
      "a payout had been made before with another amount or receiver; it is adopted as the chain shows it",
    );
  deps.metrics.transferMoves.inc({ chain: row.chain, purpose: row.purpose, from: "ready", to: "included" });
}

/** Undoes an adoption that the books cannot express. */
class NotAdopted extends Error {
  override readonly name = "NotAdopted";
}
