import { chooseNotBegun, lockNotBegun, type NotBegun, sumOf } from "../../db/queries/settlements.ts";
import { repeatInSavepoint } from "../../db/savepoint.ts";
import type { Db } from "../../db/tables.ts";

/**
 * Locks the settlements that cover an amount, in the caller's transaction. Chooses again when one of them begins, or is reduced too far,
 * before it is locked. Unlocks the others then, because settlements are locked in the order of their ids (avoids deadlock).
 */
export function lockCovering(db: Db, of: Parameters<typeof chooseNotBegun>[1]): Promise<NotBegun[]> {
  return repeatInSavepoint(db, async () => {
    const chosen = await chooseNotBegun(db, of);
    const ids = chosen.map(({ id }) => id);
    const locked = await lockNotBegun(db, ids, of.keptOf);
    const isShort = sumOf(locked) < of.amount && sumOf(chosen) >= of.amount;
    return locked.length === chosen.length && !isShort ? locked : undefined;
  });
}
