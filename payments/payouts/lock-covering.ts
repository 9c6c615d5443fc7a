import { chooseNotBegun, lockNotBegun, type NotBegun, sumOf } from "../../db/queries/settlements.ts";
import type { Db } from "../../db/tables.ts";

/** Locks the settlements that cover an amount. Chooses again when one of them begins, or is reduced too far, before it is locked. */
export async function lockCovering(db: Db, of: Parameters<typeof chooseNotBegun>[1]): Promise<NotBegun[]> {
  for (;;) {
    const chosen = await chooseNotBegun(db, of);
    const ids = chosen.map(({ id }) => id);
    const locked = await lockNotBegun(db, ids, of.keptOf);
    const isShort = sumOf(locked) < of.amount && sumOf(chosen) >= of.amount;
    if (locked.length === chosen.length && !isShort) return locked;
  }
}
