import { type Insertable, type Selectable, sql } from "kysely";
import { observationColumns } from "../columns.ts";
import { groupByColumns, insertRows } from "../insert-rows.ts";
import type { Db, Tables } from "../tables.ts";
import { isBookable } from "./failed-bookings.ts";
import type { TransferRow } from "./transfers.ts";

/**
 * Inserts the movements that were observed in a block. A log that is observed twice is stored once. Returns the ids of the
 * transfers to which the movements belong now.
 */
export async function insertObservations(
  db: Db,
  rows: readonly Insertable<Tables["observation"]>[],
): Promise<Set<string>> {
  const assigned = new Set<string>();
  // An observation that is not orphaned keeps its transfer, because the second writer may have found none. A movement that
  // is booked as an exception stays booked, and belongs to no transfer.
  for (const group of groupByColumns(rows)) {
    const stored = await sql<{ transfer_id: string | null }>`${insertRows("observation", group)}
      on conflict (chain, block_id, tx_hash, log_index) do update set
        orphaned = false,
        transfer_id = case when observation.booked then null when observation.orphaned then excluded.transfer_id
          else coalesce(observation.transfer_id, excluded.transfer_id) end
      returning transfer_id`.execute(db);
    for (const { transfer_id: id } of stored.rows) if (id !== null) assigned.add(id);
  }
  return assigned;
}

/** Marks the observations of blocks above a height as orphaned. Returns the transfers that they proved. */
export async function orphanObservations(db: Db, args: { chain: string; above: number }): Promise<string[]> {
  const rows = await db
    .updateTable("observation")
    .set({ orphaned: true })
    .where("chain", "=", args.chain)
    .where("block_number", ">", args.above)
    .where("orphaned", "=", false)
    .returning("transfer_id")
    .execute();
  return rows.flatMap((row) => row.transfer_id ?? []);
}

/** Marks the observations of transactions in these blocks as orphaned. Returns the transfers that they proved. */
export async function orphanTransactions(
  db: Db,
  args: { chain: string; txHashes: readonly string[]; blocks: readonly number[] },
): Promise<Set<string>> {
  const rows = await db
    .updateTable("observation")
    .set({ orphaned: true })
    .where("chain", "=", args.chain)
    .where(sql<boolean>`block_number = any(${args.blocks}::bigint[])`)
    .where(sql<boolean>`tx_hash = any(${args.txHashes})`)
    .where("orphaned", "=", false)
    .returning("transfer_id")
    .execute();
  return new Set(rows.flatMap((row) => row.transfer_id ?? []));
}

/** Returns those of these transfers that an observation on the current chain proves. */
export async function listClaimed(db: Db, transferIds: readonly string[]): Promise<Set<string>> {
  if (transferIds.length === 0) return new Set();
  const rows = await db
    .selectFrom("observation")
    .select("transfer_id")
    .where(sql<boolean>`transfer_id = any(${transferIds})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.flatMap((row) => row.transfer_id ?? []));
}

/** The properties of a transfer that its movement must have. */
type Movement = {
  chain: string;
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  authorization_nonce: string;
};

/** SQL: the movement is not orphaned and has these properties. */
const isMovement = (movement: Movement) => sql<boolean>`
  chain = ${movement.chain} and authorization_nonce = ${movement.authorization_nonce} and token = ${movement.token}
  and payer = ${movement.payer} and receiver = ${movement.receiver} and amount = ${movement.amount} and not orphaned`;

/** Returns true when exactly this movement has been observed, and is neither orphaned nor booked as an exception. */
export async function isObserved(db: Db, movement: Movement): Promise<boolean> {
  const row = await db
    .selectFrom("observation")
    .select("log_index")
    .where(isMovement(movement))
    .where(sql<boolean>`not booked`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns those of these logs that have been observed and are not orphaned, as `<block id> <log index>`. */
export async function listKnownLogs(
  db: Db,
  args: { chain: string; logs: readonly { blockId: string; logIndex: number }[] },
): Promise<Set<string>> {
  if (args.logs.length === 0) return new Set();
  const rows = await db
    .selectFrom("observation")
    .select(["block_id", "log_index"])
    .where("chain", "=", args.chain)
    .where(sql<boolean>`block_id = any(${args.logs.map((log) => log.blockId)})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.map((row) => `${row.block_id} ${row.log_index}`));
}

/**
 * Assigns to a transfer the observation of its movement when another sender caused that movement: before the transfer was
 * inserted, or while a lane was taking it. Returns true when there is such an observation.
 */
export async function claimObservation(db: Db, transfer: TransferRow): Promise<boolean> {
  const result = await db
    .updateTable("observation")
    .set({ transfer_id: transfer.id })
    .where(isMovement(transfer))
    .where((eb) => eb.or([eb("transfer_id", "is", null), eb("transfer_id", "=", transfer.id)]))
    .where("booked", "=", false)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

export type ObservationRow = Selectable<Tables["observation"]>;
export type UnmatchedObservation = ObservationRow;

/** The key of a payout's number on a chain. Amount and receiver are not part of it. */
type PayoutNumber = Pick<TransferRow, "id" | "chain" | "token" | "payer" | "authorization_nonce">;

/** Returns the numbers of these payouts that a movement on the current chain has used, whether or not it is booked. */
export async function listUsedNumbers(db: Db, payouts: readonly PayoutNumber[]): Promise<Set<string>> {
  if (payouts.length === 0) return new Set();
  const column = (key: keyof PayoutNumber) => payouts.map((payout) => payout[key]);
  const { rows } = await sql<{ number: string }>`
    select s.authorization_nonce as number
    from unnest(${column("id")}::text[], ${column("chain")}::text[], ${column("token")}::text[], ${column("payer")}::text[],
      ${column("authorization_nonce")}::text[]) as p (id, chain, token, payer, number)
    join observation s on s.authorization_nonce = p.number and s.chain = p.chain and s.token = p.token and s.payer = p.payer
    where not s.orphaned and (s.transfer_id is null or s.transfer_id = p.id)`.execute(db);
  return new Set(rows.map(({ number }) => number));
}

/** Returns the numbers in an account's movements that belong to no transfer: payouts that a restored database has lost. */
export async function listUnclaimedNumbers(db: Db, args: { chain: string; payer: string }): Promise<Set<string>> {
  const rows = await db
    .selectFrom("observation")
    .select("authorization_nonce")
    .where("chain", "=", args.chain)
    .where(sql<boolean>`payer = ${args.payer}`)
    .where("transfer_id", "is", null)
    .where("authorization_nonce", "is not", null)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.flatMap(({ authorization_nonce: number }) => number ?? []));
}

/**
 * Returns true when a movement has this number and belongs to no transfer: a payout that a restored database has lost.
 * Movements of other payers do not count if `payer` is given, because a stranger's deposit can carry any number.
 */
export async function isNumberUnclaimed(
  db: Db,
  args: { chain: string; payer: string | undefined; number: string },
): Promise<boolean> {
  const row = await db
    .selectFrom("observation")
    .select("chain")
    .where("chain", "=", args.chain)
    .where(args.payer === undefined ? sql<boolean>`true` : sql<boolean>`payer = ${args.payer}`)
    .where(sql<boolean>`authorization_nonce = ${args.number}`)
    .where("transfer_id", "is", null)
    .where("orphaned", "=", false)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the movement that has used a payout's number, locked until the commit. Prefers one of the same amount. */
export async function lockMovementByNumber(
  db: Db,
  payout: PayoutNumber & { amount: bigint },
): Promise<ObservationRow | undefined> {
  const { rows } = await sql<ObservationRow>`
    select * from observation
    where authorization_nonce = ${payout.authorization_nonce} and chain = ${payout.chain} and token = ${payout.token}
      and payer = ${payout.payer} and not orphaned and (transfer_id is null or transfer_id = ${payout.id})
    order by amount = ${payout.amount} desc, block_number, log_index limit 1 for update`.execute(db);
  return rows[0];
}

/** Assigns a movement to the payout that it makes. The payout takes over the receiver and the given amount. */
export async function assignObservation(
  db: Db,
  { movement, transferId, amount }: { movement: ObservationRow; transferId: string; amount: bigint },
): Promise<void> {
  await db
    .updateTable("observation")
    .set({ transfer_id: transferId, booked: false })
    .where("chain", "=", movement.chain)
    .where("block_id", "=", movement.block_id)
    .where("tx_hash", "=", movement.tx_hash)
    .where("log_index", "=", movement.log_index)
    .execute();
  await db.updateTable("transfer").set({ amount, receiver: movement.receiver }).where("id", "=", transferId).execute();
}

/** The place of a movement: a log of a block, or an index within a transaction. */
export type ObservationKey = { chain: string; block_id: string; tx_hash: string; log_index: number };

/** Returns the natural key of an unmatched movement among the failed bookings. */
export const formatObservationKey = ({ block_id, tx_hash, log_index }: Omit<ObservationKey, "chain">) =>
  `${block_id}/${tx_hash}/${log_index}`;

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

/** Returns those of these movements that have been observed and are not orphaned, as `<block id> <transaction> <index>`. */
export async function listKnownMovements(
  db: Db,
  chain: string,
  movements: readonly { blockId: string; txHash: string; logIndex: number }[],
): Promise<Set<string>> {
  if (movements.length === 0) return new Set();
  const rows = await db
    .selectFrom("observation")
    .select(["block_id", "tx_hash", "log_index"])
    .where("chain", "=", chain)
    .where(sql<boolean>`block_id = any(${movements.map(({ blockId }) => blockId)})`)
    .where(sql<boolean>`tx_hash = any(${movements.map(({ txHash }) => txHash)})`)
    .where("orphaned", "=", false)
    .execute();
  return new Set(rows.map((row) => `${row.block_id} ${row.tx_hash} ${row.log_index}`));
}
