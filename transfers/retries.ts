import type { SeenTransfer } from "../chains/movements.ts";
import type { Chain } from "../chains/open.ts";
import { deleteDueFailures, type FailedBookingRow, listDueFailures } from "../db/failed-bookings.ts";
import type { TransferDeps } from "./deps.ts";
import { type BoundBook, recordBlocks } from "./record.ts";

/**
 * Begins to try again what could not be booked earlier and is due by now. Movements are written down here; everything
 * else is no longer left out by the steps of this pass. Returns what is tried, for `endRetries`.
 */
export async function beginRetries(
  deps: TransferDeps,
  chain: Pick<Chain, "chain" | "treasury">,
  bound: BoundBook,
): Promise<FailedBookingRow[]> {
  const due = await listDueFailures(deps.db, chain.chain);
  for (const { movement } of due) {
    if (!movement) continue;
    const seen = [readMovement(movement)];
    const reading = { seen, landed: [], bound };
    const afterCommit = await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, reading));
    afterCommit();
  }
  return due;
}

/** A movement as it was before it was kept as JSON. */
function readMovement(kept: Record<string, unknown>): SeenTransfer {
  const at = kept.at === undefined ? undefined : new Date(String(kept.at));
  return { ...kept, amount: BigInt(String(kept.amount)), at } as SeenTransfer;
}

/** Forgets what has been tried again in a pass that went well, unless it failed once more. */
export async function endRetries(deps: Pick<TransferDeps, "db">, tried: readonly FailedBookingRow[]): Promise<void> {
  const ids = tried.map(({ id }) => id);
  if (ids.length > 0) await deleteDueFailures(deps.db, ids);
}
