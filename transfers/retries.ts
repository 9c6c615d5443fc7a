import type { SeenTransfer } from "../chains/movements.ts";
import type { Chain } from "../chains/open.ts";
import { deleteDueFailures, type FailedBookingRow, listDueFailures } from "../db/failed-bookings.ts";
import type { TransferDeps } from "./deps.ts";
import { type BoundBook, type Landed, type Recordable, recordBlocks } from "./record.ts";

/**
 * Returns those of our transactions in failed bookings that are in blocks which were read. On Solana each pass reads the
 * statuses of all transactions instead.
 */
type ReadLanded = (due: readonly FailedBookingRow[]) => Promise<Landed[]>;

/**
 * Starts the retry of the failed bookings that are due. Records movements, and transactions of ours that could not be marked
 * as included. The other steps of this pass no longer skip the remaining ones. Returns the retried bookings for
 * `endRetries`.
 */
export async function beginRetries(
  deps: TransferDeps,
  chain: Chain,
  { bound, readLanded }: { bound: BoundBook; readLanded?: ReadLanded },
): Promise<FailedBookingRow[]> {
  const due = await listDueFailures(deps.db, chain.chain);
  const record = async (found: Recordable) => {
    const write = deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, { ...found, bound }));
    (await write)();
  };
  for (const { movement } of due) {
    if (!movement) continue;
    await record({ seen: [readMovement(movement)], landed: [] });
  }
  const landed = (await readLanded?.(due)) ?? [];
  if (landed.length > 0) await record({ seen: [], landed });
  return due;
}

/** Returns a movement from its JSON in a failed booking. */
function readMovement(kept: Record<string, unknown>): SeenTransfer {
  const at = kept.at === undefined ? undefined : new Date(String(kept.at));
  return { ...kept, amount: BigInt(String(kept.amount)), at } as SeenTransfer;
}

/** Deletes the failed bookings that were retried in a successful pass, unless they failed again. */
export async function endRetries(deps: Pick<TransferDeps, "db">, tried: readonly FailedBookingRow[]): Promise<void> {
  const ids = tried.map(({ id }) => id);
  if (ids.length > 0) await deleteDueFailures(deps.db, ids);
}
