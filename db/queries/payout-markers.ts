import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** The marker account of a payout, and its rent in lamports. */
export type Marker = { address: string; lamports: bigint };

/** Records markers that a final transaction created. Keeps markers that exist. */
export async function recordMarkers(
  db: Db,
  args: { chain: string; hash: string; slot: number; at: Date; markers: readonly Marker[] },
): Promise<void> {
  if (args.markers.length === 0) return;
  const place = { chain: args.chain, tx_hash: args.hash, slot: args.slot, created_at: args.at };
  await db
    .insertInto("payout_marker")
    .values(args.markers.map((marker) => ({ ...place, ...marker })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** A marker with the slot and the time of its payout. */
export type ClosableMarker = Marker & { slot: number; created_at: Date };

/**
 * Returns markers that were created before a time and that no transaction is closing now, oldest first; those after one of them
 * if `after` is set.
 */
export async function listClosable(
  db: Db,
  args: { chain: string; madeBefore: Date; limit: number; after?: ClosableMarker | undefined },
): Promise<ClosableMarker[]> {
  const { after } = args;
  return db
    .selectFrom("payout_marker as m")
    .select(["m.address", "m.lamports", "m.slot", "m.created_at"])
    .where("m.chain", "=", args.chain)
    .$if(after !== undefined, (query) =>
      query.where(sql<boolean>`(m.created_at, m.address) > (${after?.created_at}::timestamptz, ${after?.address})`),
    )
    .where("m.created_at", "<=", args.madeBefore)
    .where(
      sql<boolean>`not exists (
        select from transaction t where t.chain = m.chain and t.hash = m.closing_hash
          and (t.state in ('signed', 'broadcast', 'accepted', 'included') or t.state = 'final' and not t.reverted))`,
    )
    .orderBy("m.created_at")
    .orderBy("m.address")
    .limit(args.limit)
    .execute();
}

/** Stores the transaction that will close markers, in the database transaction that stores the signed bytes. */
export async function recordClosing(
  db: Db,
  args: { chain: string; addresses: readonly string[]; hash: string },
): Promise<void> {
  await db
    .updateTable("payout_marker")
    .set({ closing_hash: args.hash })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`address = any(${args.addresses})`)
    .execute();
}

/** Deletes markers that are closed. Returns the sum of their rents, lamports. */
export async function deleteClosedMarkers(
  db: Db,
  args: { chain: string; addresses: readonly string[] },
): Promise<bigint> {
  if (args.addresses.length === 0) return 0n;
  const rows = await db
    .deleteFrom("payout_marker")
    .where("chain", "=", args.chain)
    .where(sql<boolean>`address = any(${args.addresses})`)
    .returning("lamports")
    .execute();
  return rows.reduce((sum, { lamports }) => sum + lamports, 0n);
}
