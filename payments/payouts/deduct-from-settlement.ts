import { moveRows } from "../../db/moves.ts";
import { type NotBegun, reduceSettlement } from "../../db/queries/settlements.ts";
import type { Db } from "../../db/tables.ts";

/** Deducts up to `wanted` (minor units) from a locked settlement that has not begun, but not what is kept. Returns the amount deducted. */
export async function deductFromSettlement(
  db: Db,
  { id, state, amount, kept }: NotBegun,
  wanted: bigint,
  at: Date,
): Promise<bigint> {
  if (wanted < 0n) throw new Error(`settlement ${id} cannot be reduced by ${wanted}`);
  const atMost = wanted < amount - kept ? wanted : amount - kept;
  if (atMost === 0n) return 0n;
  if (amount > atMost) {
    await reduceSettlement(db, { id, by: atMost });
    return atMost;
  }
  // The history of its payments is kept for its time from now on.
  const set = { amount: 0n, due_at: null, closed_at: at };
  await moveRows(db, "settlement", { ids: [id], from: state, to: "netted", at, set });
  return amount;
}
