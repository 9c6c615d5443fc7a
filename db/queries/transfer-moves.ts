import { sql } from "kysely";
import { moveRows } from "../moves.ts";
import type { Db } from "../tables.ts";

/**
 * Ends a ready transfer that was never assigned to a transaction. Returns false when it does not move. A transfer that was
 * assigned and became ready again (a reorg, a batch that omitted it) may still be included.
 */
export async function endUnsentTransfer(db: Db, args: { id: string; error: string; at: Date }): Promise<boolean> {
  const moved = await moveRows(db, "transfer", {
    ids: [args.id],
    from: "ready",
    to: "ended",
    at: args.at,
    set: { due_at: null, last_error: args.error },
    where: sql`not exists (
      select from event where subject = transfer.id and machine = 'transfer' and to_state in ('assigned', 'included'))`,
  });
  return moved.length > 0;
}

/**
 * Reverts included transfers whose blocks a reorg of `depth` blocks removed. A transfer is `assigned` again when its nonce
 * has bytes that can still be included, and `awaited` when the payer or another relayer made it and there is no signature
 * to submit. Any other transfer is `ready`.
 */
export async function revertTransfers(
  db: Db,
  { ids, depth, at }: { ids: readonly string[]; depth: number; at: Date },
): Promise<void> {
  const move = { ids, from: "included", at, detail: { reorg: depth } } as const;
  const isStillAssigned = sql`exists (
    select from transaction t
    where t.lane_id = transfer.lane_id and t.nonce = transfer.lane_nonce and t.state in ('signed', 'broadcast', 'accepted'))`;
  const isMadeByOthers = sql`signature is null and purpose = 'payment'`;
  const free = { lane_id: null, lane_nonce: null };
  await moveRows(db, "transfer", { ...move, to: "assigned", where: isStillAssigned });
  await moveRows(db, "transfer", { ...move, to: "awaited", where: isMadeByOthers, set: free });
  await moveRows(db, "transfer", { ...move, to: "ready", set: { ...free, due_at: at } });
}
