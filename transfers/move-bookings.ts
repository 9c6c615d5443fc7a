import type { ObservationRow } from "../db/queries/observations.ts";
import { lockOrphanedBookings, markBooked, unmarkBooked } from "../db/queries/unmatched-movements.ts";
import type { Db } from "../db/tables.ts";
import { isSameMovement } from "./match-movements.ts";

/** The members of an observation by which the same money is recognized after a reorg. */
type Recognizable = Pick<ObservationRow, "tx_hash" | "token" | "payer" | "receiver" | "amount" | "authorization_nonce">;

/**
 * Moves the bookings of unmatched movements whose block a reorg below the final height has removed to the observations of
 * the same movements in other blocks. Returns those: their money is in the ledger already. A booking that finds no movement
 * keeps its orphaned observation: the money is missing on the chain.
 * @param movements unmatched movements of one chain that are not booked; the caller has locked them
 */
export async function moveBookings(
  db: Db,
  chain: string,
  movements: readonly ObservationRow[],
): Promise<ObservationRow[]> {
  const hashes = [...new Set(movements.map(({ tx_hash }) => tx_hash))];
  const pairs = pairMovements(movements, await lockOrphanedBookings(db, { chain, hashes }));
  const moved = pairs.map(({ movement }) => movement);
  const orphans = pairs.map(({ orphan }) => orphan);
  for (const [dustId, some] of Map.groupBy(pairs, ({ orphan }) => orphan.dust_id)) {
    const keys = some.map(({ movement }) => movement);
    await markBooked(db, keys, dustId);
  }
  await unmarkBooked(db, orphans);
  return moved;
}

/**
 * Pairs movements with orphaned ones of the same transaction that moved the same amount of the same token between the same
 * accounts, one to one. A chain includes a transaction once, so both are the same money. The position of a log proves
 * nothing, because in another block the same transaction can move something else. Of equal movements, those with the same
 * authorization nonce are paired: an adopted payout is found by it. Pure.
 */
export function pairMovements<Row extends Recognizable>(
  movements: readonly Row[],
  orphaned: readonly Row[],
): { movement: Row; orphan: Row }[] {
  const open = new Set(orphaned);
  return movements.flatMap((movement) => {
    const same = [...open].filter((one) => one.tx_hash === movement.tx_hash && isSameMovement(one, movement));
    const orphan = same.find((one) => one.authorization_nonce === movement.authorization_nonce) ?? same[0];
    if (!orphan) return [];
    open.delete(orphan);
    return [{ movement, orphan }];
  });
}
