import { type Insertable, type Selectable, sql } from "kysely";
import { isBookable } from "./failed-bookings.ts";
import { moveRows } from "./moves.ts";
import type { TransferState } from "./states.ts";
import type { Db, Kind, Purpose, Tables } from "./tables.ts";

export type TransferRow = Selectable<Tables["transfer"]>;

/** A transfer that is about to be written; `state` is `ready` unless it says otherwise. */
export type NewTransfer = Omit<Insertable<Tables["transfer"]>, "state" | "created_at"> & { state?: "awaited" };

/** Writes new transfers. The unique key (chain, token, payer, nonce) refuses a second one. */
export async function insertTransfers(db: Db, rows: readonly NewTransfer[], at: Date): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto("transfer")
    .values(rows.map((row) => ({ state: "ready" as const, ...row, created_at: at })))
    .execute();
}

/** Contract wallets that a lane may not send for now: these payers, and those with these code hashes. */
export type ExcludedWallets = { payers: readonly string[]; codes: readonly string[] };

/**
 * Gives a lane what it may carry next: oldest first, without those that wait after trouble, and without those that
 * another lane in somebody's hands has been given. What a lane was given and did not carry is free again with the lane.
 * A buyer's transfer that was included so often without moving money is left to end (transfers/give-up.ts).
 * @param wallets takes transfers of contract wallets, but for the excluded ones; without it, all but those
 */
export async function claimReady(
  db: Db,
  args: {
    chain: string;
    laneId: string;
    kinds: readonly Kind[];
    now: Date;
    limit: number;
    mostInclusions: number;
    wallets?: ExcludedWallets | undefined;
  },
): Promise<TransferRow[]> {
  const { wallets } = args;
  const ofWallets = wallets
    ? sql`t.smart_wallet and t.payer <> all(${wallets.payers}) and coalesce(t.code_hash, '') <> all(${wallets.codes})`
    : sql`not t.smart_wallet`;
  const { rows } = await sql<TransferRow>`
    update transfer set lane_id = ${args.laneId} where id in (
      select t.id from transfer t
      where t.chain = ${args.chain} and t.state = 'ready' and t.kind = any(${args.kinds}) and (t.hold_until is null or t.hold_until <= ${args.now})
        and ${ofWallets}
        and not (t.alone and t.purpose = 'payment'
          and (select count(*) from burned_gas b where b.transfer_id = t.id) >= ${args.mostInclusions})
        and (t.lane_id is null or t.lane_id = ${args.laneId}
          or not exists (select from lane l where l.id = t.lane_id and l.lease_until > clock_timestamp()))
      order by t.created_at, t.id limit ${args.limit} for update skip locked
    )
    returning *`.execute(db);
  return rows.toSorted((a, b) => a.created_at.getTime() - b.created_at.getTime() || (a.id < b.id ? -1 : 1));
}

/** Transfers that could be carried now: one of a plain key (or of ours), and one of a contract wallet. */
export async function listWaiting(
  db: Db,
  args: { chain: string; now: Date },
): Promise<{ id: string; smart_wallet: boolean }[]> {
  return db
    .selectFrom("transfer")
    .select(["id", "smart_wallet"])
    .distinctOn("smart_wallet")
    .where("chain", "=", args.chain)
    .where("state", "=", "ready")
    .where((eb) => eb.or([eb("hold_until", "is", null), eb("hold_until", "<=", args.now)]))
    .orderBy("smart_wallet")
    .execute();
}

/** Sends transfers whose payers have become contracts since they were verified to the lane of contract wallets. */
export async function markAsWallets(db: Db, rows: readonly { id: string; codeHash: string }[]): Promise<void> {
  for (const { id, codeHash } of rows)
    await db
      .updateTable("transfer")
      .set({ smart_wallet: true, code_hash: codeHash, lane_id: null })
      .where("id", "=", id)
      .where("state", "=", "ready")
      .execute();
}

/** How many transfers stand in each unfinished state. */
export async function countUnfinished(db: Db): Promise<{ chain: string; state: string; count: number }[]> {
  return db
    .selectFrom("transfer")
    .select(["chain", "state", sql<number>`count(*)::int`.as("count")])
    .where("state", "not in", ["confirmed", "ended"])
    .groupBy(["chain", "state"])
    .execute();
}

/** Unfinished transfers of one asset and kind. */
export type UnfinishedKind = { chain: string; asset: string; kind: Kind; isPayment: boolean; count: number };

/** Which assets and kinds unfinished transfers are of. */
export async function listUnfinishedKinds(db: Db): Promise<UnfinishedKind[]> {
  return db
    .selectFrom("transfer")
    .select(["chain", "asset", "kind"])
    .select([sql<boolean>`purpose = 'payment'`.as("isPayment"), sql<number>`count(*)::int`.as("count")])
    .where("state", "not in", ["confirmed", "ended"])
    .groupBy(["chain", "asset", "kind", sql`purpose = 'payment'`])
    .orderBy("asset")
    .orderBy("kind")
    .execute();
}

/** Payouts that have failed before they were sent, more often than chance makes them. */
export async function countHeldPayouts(db: Db): Promise<{ chain: string; count: number }[]> {
  return db
    .selectFrom("transfer")
    .select(["chain", sql<number>`count(*)::int`.as("count")])
    .where("state", "=", "ready")
    .where("purpose", "!=", "payment")
    .where("troubles", ">=", HELD_AFTER)
    .groupBy("chain")
    .execute();
}

/** Failed tries after which a payout counts as held: about half a minute. */
const HELD_AFTER = 4;

/** Puts transfers into a lane's nonce. Fewer ids than asked means that somebody else took some: undo the whole. */
export async function carryTransfers(
  db: Db,
  args: { ids: readonly string[]; laneId: string; nonce: number; at: Date },
): Promise<string[]> {
  return moveRows(db, "transfer", {
    ids: args.ids,
    from: "ready",
    to: "carried",
    at: args.at,
    detail: { lane: args.laneId, nonce: args.nonce },
    where: sql`lane_id = ${args.laneId}`,
    set: { lane_id: args.laneId, lane_nonce: args.nonce, due_at: null, hold_until: null },
  });
}

/** The same for several lanes' numbers at once; the caller has locked the transfers. */
export async function carryAssigned(
  db: Db,
  args: { slots: readonly { id: string; laneId: string; nonce: number }[]; at: Date },
): Promise<string[]> {
  const column = <K extends "id" | "laneId" | "nonce">(key: K) => args.slots.map((slot) => slot[key]);
  const slot = (name: "lane_id" | "nonce") => sql`(
    select f.${sql.ref(name)} from unnest(${column("id")}::text[], ${column("laneId")}::text[], ${column("nonce")}::bigint[])
      as f (id, lane_id, nonce) where f.id = transfer.id)`;
  const set = { lane_id: slot("lane_id"), lane_nonce: slot("nonce"), due_at: null, hold_until: null };
  return moveRows(db, "transfer", { ids: column("id"), from: "ready", to: "carried", at: args.at, set });
}

/** Transfers of a kind and of some purposes that could be carried now, oldest first; nobody's yet. */
export async function listReady(
  db: Db,
  args: { chain: string; kind: Kind; purposes: readonly Purpose[]; now: Date; limit: number },
): Promise<TransferRow[]> {
  return db
    .selectFrom("transfer")
    .selectAll()
    .where("chain", "=", args.chain)
    .where("state", "=", "ready")
    .where("kind", "=", args.kind)
    .where("purpose", "in", args.purposes)
    .where((eb) => eb.or([eb("hold_until", "is", null), eb("hold_until", "<=", args.now)]))
    .orderBy("created_at")
    .orderBy("id")
    .limit(args.limit)
    .execute();
}

/** Locks those of these transfers that are still ready, for the rest of the transaction. */
export async function lockReady(db: Db, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .selectFrom("transfer")
    .select("id")
    .where(sql<boolean>`id = any(${ids})`)
    .where("state", "=", "ready")
    .orderBy("id")
    .forUpdate()
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/** SQL: when a transfer in trouble is tried again; longer each time, up to a minute. */
function backOff(now: Date) {
  return sql<Date>`${now}::timestamptz + least(60, power(2, least(troubles, 6))) * interval '1 second'`;
}

/** Keeps a transfer that cannot be made now until a later try; the authorization stays good until it expires. */
export async function holdTransfer(db: Db, args: { id: string; trouble: string; now: Date }): Promise<void> {
  await db
    .updateTable("transfer")
    .set({
      lane_id: null,
      last_trouble: args.trouble,
      troubles: sql`troubles + 1`,
      hold_until: backOff(args.now),
      due_at: backOff(args.now),
    })
    .where("id", "=", args.id)
    .where("state", "=", "ready")
    .execute();
}

/** Live transfers that a chain's movements may belong to, by their natural key. */
export async function listByAuthorizations(
  db: Db,
  args: { chain: string; nonces: readonly string[] },
): Promise<TransferRow[]> {
  if (args.nonces.length === 0) return [];
  return db
    .selectFrom("transfer")
    .selectAll()
    .where("chain", "=", args.chain)
    .where(sql<boolean>`authorization_nonce = any(${args.nonces})`)
    .execute();
}

/** Transfers that ride in these nonces of lanes, and stand in one of some states (`carried` when unset). */
export async function listCarried(
  db: Db,
  slots: readonly { lane_id: string; nonce: number }[],
  states: readonly TransferState[] = ["carried"],
): Promise<TransferRow[]> {
  if (slots.length === 0) return [];
  return db
    .selectFrom("transfer")
    .selectAll()
    .where("state", "in", states)
    .where(
      sql<boolean>`(lane_id, lane_nonce) in (
        select * from unnest(${slots.map((slot) => slot.lane_id)}::text[], ${slots.map((slot) => slot.nonce)}::bigint[]))`,
    )
    .execute();
}

/** Takes transfers out of a nonce that did not make them, to be tried alone, and later each time. */
export async function uncarryTransfers(
  db: Db,
  args: { ids: readonly string[]; reason: string; now: Date },
): Promise<string[]> {
  return moveRows(db, "transfer", {
    ids: args.ids,
    from: "carried",
    to: "ready",
    at: args.now,
    detail: { reason: args.reason },
    set: {
      ...{ lane_id: null, lane_nonce: null, alone: true, last_trouble: args.reason },
      ...{ troubles: sql`troubles + 1`, due_at: backOff(args.now), hold_until: backOff(args.now) },
    },
  });
}

/** A confirmed transfer with the log that proves it. */
export type ConfirmedTransfer = {
  id: string;
  purpose: Purpose;
  payment_id: string | null;
  settlement_id: string | null;
  refund_id: string | null;
  chain: string;
  asset: string;
  receiver: string;
  amount: bigint;
  block_number: number;
  block_hash: string;
  tx_hash: string;
  log_index: number;
};

/** Included transfers whose block is at or below a height, oldest first; without those that could not be booked. */
export async function listConfirmable(
  db: Db,
  args: { chain: string; upTo: number; limit: number; except?: readonly string[] },
): Promise<ConfirmedTransfer[]> {
  return proofs(db)
    .where(sql<boolean>`t.id <> all(${args.except ?? []}::text[])`)
    .where("t.chain", "=", args.chain)
    .where("t.state", "=", "included")
    .where("s.block_number", "<=", args.upTo)
    .where(isBookable("transfer", { chain: "t.chain", subject: sql.ref("t.id") }))
    .limit(args.limit)
    .execute();
}

/** The logs of a range of blocks that are to be booked: they prove included transfers, or are unmatched. */
export async function listProofsBetween(
  db: Db,
  args: { chain: string; from: number; to: number },
): Promise<{ blockNumber: number; blockHash: string; logIndex: number }[]> {
  return db
    .selectFrom("sighting as s")
    .leftJoin("transfer as t", "t.id", "s.transfer_id")
    .select(["s.block_number as blockNumber", "s.block_hash as blockHash", "s.log_index as logIndex"])
    .where("s.chain", "=", args.chain)
    .where("s.orphaned", "=", false)
    .where(sql<boolean>`(t.state = 'included' or (s.transfer_id is null and not s.booked))`)
    .where("s.block_number", ">=", args.from)
    .where("s.block_number", "<=", args.to)
    .execute();
}

/**
 * Confirms transfers, if the sighting that proves each still stands at or below a height. Gives them with the proof
 * as it stands now, in the order of the chain.
 */
export async function confirmTransfers(
  db: Db,
  args: { ids: readonly string[]; upTo: number; at: Date },
): Promise<ConfirmedTransfer[]> {
  const moved = await moveRows(db, "transfer", {
    ids: args.ids,
    from: "included",
    to: "confirmed",
    at: args.at,
    where: sql`exists (
      select from sighting s where s.transfer_id = transfer.id and not s.orphaned and s.block_number <= ${args.upTo})`,
  });
  if (moved.length === 0) return [];
  return proofs(db).where(sql<boolean>`t.id = any(${moved})`).execute();
}

function proofs(db: Db) {
  return db
    .selectFrom("transfer as t")
    .innerJoin("sighting as s", (join) => join.onRef("s.transfer_id", "=", "t.id").on("s.orphaned", "=", false))
    .select([
      "t.id",
      "t.purpose",
      "t.payment_id",
      "t.settlement_id",
      "t.refund_id",
      "t.chain",
      "t.asset",
      "t.receiver",
      "t.amount",
    ])
    .select(["s.block_number", "s.block_hash", "s.tx_hash", "s.log_index"])
    .orderBy("s.block_number")
    .orderBy("s.log_index");
}

/** Unfinished transfers whose authorization is past its time; `at` in Unix seconds, on Solana a block height. */
export async function listOutlived(db: Db, args: { chain: string; at: number; limit: number }): Promise<TransferRow[]> {
  return db
    .selectFrom("transfer")
    .selectAll()
    .where("chain", "=", args.chain)
    .where("state", "in", ["ready", "carried", "awaited"])
    .where("valid_before", "<=", args.at)
    .where(isBookable("ended", { chain: "transfer.chain", subject: sql.ref("transfer.id") }))
    .orderBy("valid_before")
    .limit(args.limit)
    .execute();
}
