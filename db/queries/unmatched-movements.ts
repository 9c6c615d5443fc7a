import { sql } from "kysely";
import { observationColumns } from "../columns.ts";
import type { Db } from "../tables.ts";
import { isBookable } from "./failed-bookings.ts";
import type { ObservationRow } from "./observations.ts";

/** The place of a movement: a log of a block, or an index within a transaction. */
export type ObservationKey = { chain: string; block_id: string; tx_hash: string; log_index: number };

/** Returns the unique key of an unmatched movement among the failed bookings. */
export const formatObservationKey = ({ block_id, tx_hash, log_index }: Omit<ObservationKey, "chain">) =>
  `${block_id}/${tx_hash}/${log_index}`;

/** A movement that belongs to no transfer. */
export type UnmatchedObservation = ObservationRow;

/** Returns movements at or below a height that belong to no transfer and are not booked, oldest first. */
export async function listUnmatched(
  db: Db,
  args: { chain: string; upTo: number; limit: number; except?: readonly ObservationKey[] },
): Promise<UnmatchedObservation[]> {
  return db
    .selectFrom("observation")
    .select(observationColumns)
    .where(sql<boolean>`not ${isOneOf(args.except ?? [])}`)
    .where("chain", "=", args.chain)
    .where("block_number", "<=", args.upTo)
    .where(isUnmatched)
    .where(
      isBookable("unmatched", {
        chain: "observation.chain",
        subject: sql`block_id || '/' || tx_hash || '/' || log_index`,
      }),
    )
    .orderBy("block_number")
    .orderBy("log_index")
    .limit(args.limit)
    .execute();
}

/** SQL: the movement belongs to no transfer and is not booked. */
const isUnmatched = sql<boolean>`transfer_id is null and not orphaned and not booked`;

/** SQL: the movement is one of these. */
const isOneOf = (keys: readonly ObservationKey[]) => {
  const column = <K extends keyof ObservationKey>(key: K) => keys.map((one) => one[key]);
  return sql<boolean>`(chain, block_id, tx_hash, log_index) in (
    select * from unnest(${column("chain")}::text[], ${column("block_id")}::text[], ${column("tx_hash")}::text[],
      ${column("log_index")}::integer[]))`;
};

/** Returns those of these movements that are still unmatched and not booked, locked until the commit. */
export async function lockUnmatched(db: Db, keys: readonly ObservationKey[]): Promise<UnmatchedObservation[]> {
  return db
    .selectFrom("observation")
    .select(observationColumns)
    .where(isOneOf(keys))
    .where(isUnmatched)
    .orderBy("block_number")
    .orderBy("log_index")
    .forUpdate()
    .execute();
}

/** Returns true when one of these movements is booked as an exception. */
export async function hasBooked(
  db: Db,
  chain: string,
  movements: readonly { blockId: string; txHash: string; logIndex: number }[],
): Promise<boolean> {
  const keys = movements.map(({ blockId, txHash, logIndex }) => {
    return { chain, block_id: blockId, tx_hash: txHash, log_index: logIndex };
  });
  const row = await db
    .selectFrom("observation")
    .select("log_index")
    .where(isOneOf(keys))
    .where(sql<boolean>`booked`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Assigns an unmatched movement to a transfer. The caller has locked it. */
export async function assignUnmatched(db: Db, key: ObservationKey, transferId: string): Promise<void> {
  await db
    .updateTable("observation")
    .set({ transfer_id: transferId })
    .where(isOneOf([key]))
    .execute();
}

/** Marks movements as booked. The caller has locked them and books them in the same transaction. */
export async function markBooked(db: Db, keys: readonly ObservationKey[], dustId: number | null): Promise<void> {
  if (keys.length === 0) return;
  await db.updateTable("observation").set({ booked: true, dust_id: dustId }).where(isOneOf(keys)).execute();
}

/** Returns the booked movements of transactions that a reorg has removed from the chain, locked until the commit. */
export async function lockOrphanedBookings(
  db: Db,
  { chain, hashes }: { chain: string; hashes: readonly string[] },
): Promise<ObservationRow[]> {
  return db
    .selectFrom("observation")
    .select(observationColumns)
    .where(sql<boolean>`orphaned and booked`)
    .where("chain", "=", chain)
    .where(sql<boolean>`tx_hash = any(${hashes})`)
    .orderBy("block_number")
    .orderBy("log_index")
    .forUpdate()
    .execute();
}

/** Marks movements as not booked, because other observations have their bookings. The caller has locked them. */
export async function unmarkBooked(db: Db, keys: readonly ObservationKey[]): Promise<void> {
  if (keys.length === 0) return;
  await db.updateTable("observation").set({ booked: false, dust_id: null }).where(isOneOf(keys)).execute();
}
