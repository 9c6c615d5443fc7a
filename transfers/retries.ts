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
 * Begins to try again what could not be booked earlier and is due by now. Movements, and transactions of ours that could
 * not be called included, are written down here; everything else is no longer left out by the steps of this pass.
 * Returns what is tried, for `endRetries`.
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

/** A movement as it was before it was kept as JSON. */
function readMovement(kept: Record<string, unknown>): SeenTransfer {
  const at = kept.at === undefined ? undefined : new Date(String(kept.at));
  return { ...kept, amount: BigInt(String(kept.amount)), at } as SeenTransfer;
}

/** Transactions in blocks that have been read, and that are not known to be there. (On Solana each pass asks for all.) */
async function readLanded(
  deps: TransferDeps,
  chain: Chain,
  { number }: Cursor,
  due: readonly FailedBookingRow[],
): Promise<Landed[]> {
  if (chain.family !== "evm") return [];
  const hashes = due.filter(({ kind }) => kind === "transaction").map(({ subject }) => subject);
  const rows = await listByHashes(deps.db, { chain: chain.chain, hashes });
  const found = await Promise.all(rows.map(async (row) => ({ row, receipt: await readReceipt(chain.rpc, row.hash) })));
  return found.flatMap(({ row, receipt }) => (receipt && receipt.blockNumber <= number ? [{ row, receipt }] : []));
}

/** Forgets what has been tried again in a pass that went well, unless it failed once more. */
export async function endRetries(deps: Pick<TransferDeps, "db">, tried: readonly FailedBookingRow[]): Promise<void> {
  const ids = tried.map(({ id }) => id);
  if (ids.length > 0) await deleteDueFailures(deps.db, ids);
}
