import { z } from "zod";
import type { Chain } from "../chains/chain.ts";
import { deleteDueFailures, type FailedBookingRow, listDueFailures } from "../db/queries/failed-bookings.ts";
import { type BookUnsolicited, type IncludedTransaction, type Recordable, recordBlocks } from "./record-movements.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Returns those of our transactions in failed bookings that are in blocks which were read. On Solana each pass reads the
 * statuses of all transactions instead.
 */
type ReadLanded = (due: readonly FailedBookingRow[]) => Promise<IncludedTransaction[]>;

/**
 * Starts the retry of the failed bookings that are due. Records movements, and transactions of ours that could not be marked
 * as included. The other steps of this pass no longer skip the remaining ones. Returns the retried bookings for
 * `endBookingRetries`.
 */
export async function beginBookingRetries(
  deps: TransferDeps,
  chain: Chain,
  { unsolicited, readLanded }: { unsolicited: BookUnsolicited; readLanded?: ReadLanded },
): Promise<FailedBookingRow[]> {
  const due = await listDueFailures(deps.db, chain.chain);
  const record = async (found: Recordable) => {
    const reading = { ...found, unsolicited, isLate: true };
    (await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, reading)))();
  };
  for (const { movement } of due) {
    if (!movement) continue;
    await record({ seen: [storedMovement.parse(movement)], landed: [] });
  }
  const landed = (await readLanded?.(due)) ?? [];
  if (landed.length > 0) await record({ seen: [], landed });
  return due;
}

/** A movement as JSON in a failed booking. */
const storedMovement = z.object({
  blockId: z.string(),
  blockNumber: z.number(),
  txHash: z.string(),
  logIndex: z.number(),
  token: z.string(),
  payer: z.string(),
  receiver: z.string(),
  amount: z.string().transform(BigInt),
  authorizationNonce: z.string().nullable(),
  at: z.coerce.date().optional(),
});

/** Deletes the failed bookings that were retried in a successful pass, unless they failed again. */
export async function endBookingRetries(
  deps: Pick<TransferDeps, "db">,
  tried: readonly FailedBookingRow[],
): Promise<void> {
  const ids = tried.map(({ id }) => id);
  if (ids.length > 0) await deleteDueFailures(deps.db, ids);
}
