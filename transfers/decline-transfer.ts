import { commitIfOk } from "../db/in-transaction.ts";
import { moveRows } from "../db/moves.ts";
import { lockEndable } from "../db/queries/expired-transfers.ts";
import { claimObservation } from "../db/queries/observations.ts";
import { endUnsentTransfer } from "../db/queries/transfer-moves.ts";
import { holdTransfer, type TransferRow } from "../db/queries/transfers.ts";
import type { Db } from "../db/tables.ts";
import { SCREENED_OUT } from "./list-screening.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Books transfers whose payers failed screening before anything was sent, in the database transaction that ends them.
 * Returns a function to call after the commit.
 */
export type BookDeclined = (db: Db, declined: readonly TransferRow[]) => Promise<() => void>;

/**
 * Ends a transfer whose payer failed screening. A transfer that was ever assigned to a transaction may still be on the
 * chain, so it is held instead, and so is one whose payment waits for other money to be final.
 */
export async function declineTransfer(deps: TransferDeps, row: TransferRow, book: BookDeclined): Promise<void> {
  const afterCommit = await deps.db.transaction().execute(async (db) => {
    if (!(await lockEndable(db, [row.id], deps.now())).has(row.id)) return undefined;
    const isEnded = await endUnsentTransfer(db, { id: row.id, error: SCREENED_OUT, at: deps.now() });
    return isEnded ? await book(db, [row]) : undefined;
  });
  if (!afterCommit) return void (await holdTransfer(deps.db, { id: row.id, error: SCREENED_OUT, now: deps.now() }));
  deps.log.warn({ transfer: row.id, chain: row.chain }, "payer failed screening; nothing is sent");
  deps.metrics.transferTransitions.inc({ chain: row.chain, purpose: row.purpose, from: "ready", to: "ended" });
  afterCommit();
}

/**
 * Includes a transfer that another relayer has already made, if there is an observed movement for it. Returns true then, and for
 * a transfer that is no longer ready: its movement belongs to it already, or is an exception because the transfer has ended.
 */
export async function claimExistingMovement(deps: TransferDeps, row: TransferRow): Promise<boolean> {
  const claimed = await commitIfOk(deps.db, async (db) => {
    if (!(await claimObservation(db, row))) return { ok: false, isMade: false };
    const detail = { relayedBy: "another relayer" };
    const moved = await moveRows(db, "transfer", {
      ids: [row.id],
      from: "ready",
      to: "included",
      at: deps.now(),
      detail,
      set: { due_at: null, hold_until: null },
    });
    return { ok: moved.length > 0, isMade: true };
  });
  return claimed.isMade;
}
