import { type Insertable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";
import type { TransferRow } from "./transfers.ts";

/** Writes what was seen in a block; the same log seen again changes nothing. */
export async function insertSightings(db: Db, rows: readonly Insertable<Tables["sighting"]>[]): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto("sighting")
    .values([...rows])
    .onConflict((conflict) =>
      conflict
        .columns(["chain", "block_hash", "log_index"])
        .doUpdateSet({ orphaned: false, transfer_id: sql`excluded.transfer_id` }),
    )
    .execute();
}

/** Blocks above a height are gone, and what was seen in them with them. Gives the transfers that were proved there. */
export async function orphanSightings(db: Db, args: { chain: string; above: number }): Promise<string[]> {
  const rows = await db
    .updateTable("sighting")
    .set({ orphaned: true })
    .where("chain", "=", args.chain)
    .where("block_number", ">", args.above)
    .where("orphaned", "=", false)
    .returning("transfer_id")
    .execute();
  return rows.flatMap((row) => row.transfer_id ?? []);
}

/** True when a movement with this authorization stands on the chain as we have read it. */
export async function isSighted(
  db: Db,
  key: { chain: string; token: string; payer: string; nonce: string },
): Promise<boolean> {
  const row = await db
    .selectFrom("sighting")
    .select("log_index")
    .where("chain", "=", key.chain)
    .where("authorization_nonce", "=", key.nonce)
    .where("token", "=", key.token)
    .where("payer", "=", key.payer)
    .where("orphaned", "=", false)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Gives a transfer the sighting of its movement that somebody else has caused: one that was written before the
 * transfer was, or while a lane was taking it. True when there is one.
 */
export async function claimSighting(db: Db, transfer: TransferRow): Promise<boolean> {
  const result = await db
    .updateTable("sighting")
    .set({ transfer_id: transfer.id })
    .where("chain", "=", transfer.chain)
    .where("authorization_nonce", "=", transfer.authorization_nonce)
    .where("token", "=", transfer.token)
    .where("payer", "=", transfer.payer)
    .where("receiver", "=", transfer.receiver)
    .where("amount", "=", transfer.amount)
    .where((eb) => eb.or([eb("transfer_id", "is", null), eb("transfer_id", "=", transfer.id)]))
    .where("orphaned", "=", false)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}
