import type { Hex } from "viem";
import { readReceipt } from "../chains/evm/send.ts";
import type { SeenTransfer } from "../chains/movements.ts";
import type { Chain } from "../chains/open.ts";
import type { Cursor } from "../db/cursors.ts";
import { deleteDueFailures, type FailedBookingRow, listDueFailures } from "../db/failed-bookings.ts";
import { listByHashes } from "../db/transactions.ts";
import type { TransferDeps } from "./deps.ts";
import type { Landed } from "./reading.ts";
import { type BoundBook, recordBlocks } from "./record.ts";

/**
 * Starts the retry of the failed bookings that are due. Records movements, and transactions of ours that could not be marked
 * as included. The other steps of this pass no longer skip the remaining ones. Returns the retried bookings for
 * `endRetries`.
 */
export async function beginRetries(
  deps: TransferDeps,
  chain: Chain,
  { cursor, bound }: { cursor: Cursor; bound: BoundBook },
): Promise<FailedBookingRow[]> {
  const due = await listDueFailures(deps.db, chain.chain);
  const record = async (reading: { seen: SeenTransfer[]; landed: Landed[] }) => {
    const write = deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, { ...reading, bound }));
    (await write)();
  };
  for (const { movement } of due) {
    if (!movement) continue;
    await record({ seen: [readMovement(movement)], landed: [] });
  }
  const landed = await readLanded(deps, chain, cursor, due);
  if (landed.length > 0) await record({ seen: [], landed });
  return due;
}

/** Returns a movement from its JSON in a failed booking. */
function readMovement(kept: Record<string, unknown>): SeenTransfer {
  const at = kept.at === undefined ? undefined : new Date(String(kept.at));
  return { ...kept, amount: BigInt(String(kept.amount)), at } as SeenTransfer;
}

/** Returns transactions of ours in blocks that were read and that are not marked as included yet. */
async function readLanded(
  deps: TransferDeps,
  chain: Chain,
  { number }: Cursor,
  due: readonly FailedBookingRow[],
): Promise<Landed[]> {
  if (chain.family !== "evm") return [];
  const hashes = due.filter(({ kind }) => kind === "transaction").map(({ subject }) => subject);
  const rows = await listByHashes(deps.db, { chain: chain.chain, hashes });
  const found = await Promise.all(
    rows.map(async (row) => ({ row, receipt: await readReceipt(chain.rpc, row.hash as Hex) })),
  );
  return found.flatMap(({ row, receipt }) => (receipt && receipt.blockNumber <= number ? [{ row, receipt }] : []));
}

/** Deletes the failed bookings that were retried in a successful pass, unless they failed again. */
export async function endRetries(deps: Pick<TransferDeps, "db">, tried: readonly FailedBookingRow[]): Promise<void> {
  const ids = tried.map(({ id }) => id);
  if (ids.length > 0) await deleteDueFailures(deps.db, ids);
}
