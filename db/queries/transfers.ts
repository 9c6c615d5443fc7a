import { type Insertable, type RawBuilder, type Selectable, sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { type EvmRow, readFamilyRow, readSolanaRow, type SolanaRow } from "../chain-families.ts";
import { transferColumns } from "../columns.ts";
import { groupByColumns, insertRows } from "../insert-rows.ts";
import { moveRows } from "../moves.ts";
import type { TransferState } from "../states.ts";
import type { Db, Purpose, Tables } from "../tables.ts";
import { claimOrder, isUnreserved } from "./claim-transfers.ts";
import { isNamedByUnread } from "./history-entries.ts";

type Row = Selectable<Tables["transfer"]>;
export type EvmTransferRow = EvmRow<Row>;
export type SolanaTransferRow = SolanaRow<Row>;
/** A transfer. `kind` tells the chain families apart. */
export type TransferRow = EvmTransferRow | SolanaTransferRow;

/** A new transfer. Its state is `ready` when unset. */
export type NewTransfer = Omit<Insertable<Tables["transfer"]>, "state" | "created_at"> & { state?: "awaited" };

/** Inserts transfers. Throws when the unique key (chain, token, payer, nonce) exists. */
export async function insertTransfers(db: Db, rows: readonly NewTransfer[], at: Date): Promise<void> {
  const all = rows.map((row) => ({ state: "ready" as const, ...row, created_at: at }));
  for (const group of groupByColumns(all)) await insertRows("transfer", group).execute(db);
}

/**
 * Inserts a ready transfer to the cold address. If the chain's token has one with its payer and nonce, sets the amount, receiver
 * and signature of that one instead, unless it has them or a lane that a worker holds has reserved it. Returns the id of the transfer
 * that was inserted or changed, otherwise undefined.
 */
export async function putColdTransfer(
  db: Db,
  row: NewTransfer & { purpose: "cold" },
  at: Date,
): Promise<string | undefined> {
  const put = await db
    .insertInto("transfer")
    .values({ state: "ready", ...row, created_at: at })
    .onConflict((conflict) =>
      conflict
        .columns(["chain", "token", "payer", "authorization_nonce"])
        .doUpdateSet((eb) => ({
          amount: eb.ref("excluded.amount"),
          receiver: eb.ref("excluded.receiver"),
          signature: eb.ref("excluded.signature"),
          hold_until: null,
        }))
        .where("transfer.state", "=", "ready")
        .where(isUnreserved("transfer"))
        .where(sql<boolean>`(transfer.amount, transfer.receiver) <> (excluded.amount, excluded.receiver)`),
    )
    .returning("id")
    .executeTakeFirst();
  return put?.id;
}

/** Returns what settlements and refunds that are not final yet take from the treasury, minor units. */
export async function sumUnfinishedPayouts(
  db: Db,
  { chain, asset }: { chain: string; asset: string },
): Promise<bigint> {
  const { rows } = await sql<{ amount: bigint }>`
    select coalesce(sum(amount), 0) as amount from transfer
    where chain = ${chain} and asset = ${asset} and state not in ('confirmed', 'ended')
      and purpose in ('settlement', 'refund')`.execute(db);
  return rows[0]?.amount ?? 0n;
}

/** Returns at most two ready transfers: one of a contract wallet, and one of another payer. */
export async function listWaiting(
  db: Db,
  args: { chain: string; now: Date },
): Promise<{ id: string; smart_wallet: boolean }[]> {
  return db
    .selectFrom("transfer")
    .select(["id", "smart_wallet"])
    .distinctOn("smart_wallet")
    .where("chain", "=", args.chain)
    .where(sql<boolean>`state = 'ready'`)
    .where((eb) => eb.or([eb("hold_until", "is", null), eb("hold_until", "<=", args.now)]))
    .orderBy("smart_wallet")
    .execute();
}

/** Marks transfers whose payers have become contracts since their verification, so that the lane of contract wallets sends them. */
export async function markAsWallets(db: Db, rows: readonly { id: string; codeHash: string }[]): Promise<void> {
  for (const { id, codeHash } of rows)
    await db
      .updateTable("transfer")
      .set({ smart_wallet: true, code_hash: codeHash, lane_id: null })
      .where("id", "=", id)
      .where("state", "=", "ready")
      .execute();
}

/** What a transaction of a transfer says. Until the transfer is assigned, `putColdTransfer` and `renewPayout` may change it. */
export type TransferCall = Pick<TransferRow, "id" | "payer" | "receiver" | "amount" | "signature">;

/** SQL: a row of `transfer` still says what the transaction that was signed for it says. */
function isUnchanged(calls: readonly TransferCall[]): RawBuilder<boolean> {
  const column = <K extends keyof TransferCall>(key: K) => calls.map((call) => call[key]);
  return sql`exists (
    select from unnest(${column("id")}::text[], ${column("payer")}::text[], ${column("receiver")}::text[],
      ${column("amount")}::numeric[], ${column("signature")}::bytea[]) as c (id, payer, receiver, amount, signature)
    where c.id = transfer.id and (c.payer, c.receiver, c.amount) = (transfer.payer, transfer.receiver, transfer.amount)
      and c.signature is not distinct from transfer.signature)`;
}

/**
 * Assigns transfers to a lane's nonce, unless they are reserved for another lane or have changed since they were read. Returns
 * the assigned ids; the caller must roll back when some are missing, because another worker has taken or changed those.
 */
export async function assignTransfers(
  db: Db,
  args: { calls: readonly TransferCall[]; laneId: string; nonce: number; at: Date },
): Promise<string[]> {
  return moveRows(db, "transfer", {
    ids: args.calls.map(({ id }) => id),
    from: "ready",
    to: "assigned",
    at: args.at,
    detail: { lane: args.laneId, nonce: args.nonce },
    where: sql`(transfer.lane_id = ${args.laneId} or ${isUnreserved("transfer")}) and ${isUnchanged(args.calls)}`,
    set: { lane_id: args.laneId, lane_nonce: args.nonce, due_at: null, hold_until: null },
  });
}

/** Assigns transfers to numbers of several lanes. The caller has locked the transfers (`lockReady`). */
export async function assignToLanes(
  db: Db,
  args: { slots: readonly { id: string; laneId: string; nonce: number }[]; at: Date },
): Promise<string[]> {
  const column = <K extends "id" | "laneId" | "nonce">(key: K) => args.slots.map((slot) => slot[key]);
  const given = sql`unnest(${column("id")}::text[], ${column("laneId")}::text[], ${column("nonce")}::bigint[])
    as given (id, lane_id, nonce)`;
  const slot = { lane_id: sql<string>`given.lane_id`, lane_nonce: sql<number>`given.nonce` };
  const set = { ...slot, due_at: null, hold_until: null };
  return moveRows(db, "transfer", { ids: column("id"), from: "ready", to: "assigned", at: args.at, set, given });
}

/**
 * Returns ready transfers of a Solana cluster and of these purposes that were accepted since a time, in the order of `claimOrder`, without
 * those that an unread transaction names: it may have made them. Neither locks nor reserves them.
 */
export async function listReady(
  db: Db,
  args: { chain: string; purposes: readonly Purpose[]; now: Date; limit: number; acceptedSince: Date },
): Promise<SolanaTransferRow[]> {
  const rows = await db
    .selectFrom("transfer")
    .select(transferColumns)
    .where("chain", "=", args.chain)
    .where("state", "=", "ready")
    .where("kind", "=", "spl")
    .where("purpose", "in", args.purposes)
    .where("created_at", ">=", args.acceptedSince)
    .where(sql<boolean>`not ${isNamedByUnread("transfer")}`)
    .where((eb) => eb.or([eb("hold_until", "is", null), eb("hold_until", "<=", args.now)]))
    .orderBy(claimOrder("transfer"))
    .limit(args.limit)
    .execute();
  return rows.map(readSolanaRow);
}

/** Locks those of these transfers that are still ready and have not changed, until the commit. Returns their ids. */
export async function lockReady(db: Db, calls: readonly TransferCall[]): Promise<Set<string>> {
  const rows = await db
    .selectFrom("transfer")
    .select("id")
    .where(sql<boolean>`id = any(${calls.map(({ id }) => id)})`)
    .where(isUnchanged(calls))
    .where("state", "=", "ready")
    .orderBy("id")
    .forUpdate()
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/** SQL: when a failed transfer is retried (exponential backoff up to one minute). */
function backOff(now: Date) {
  return sql<Date>`${now}::timestamptz + least(60, power(2, least(retries, 6))) * interval '1 second'`;
}

/** The columns of a transfer that is retried later. */
function heldColumns({ error, now }: { error: string; now: Date }) {
  return {
    lane_id: null,
    last_error: error,
    retries: sql<number>`retries + 1`,
    hold_until: backOff(now),
    due_at: backOff(now),
  };
}

/** Postpones a transfer that cannot be made now. Its authorization stays valid until it expires. */
export async function holdTransfer(db: Db, args: { id: string; error: string; now: Date }): Promise<void> {
  await db
    .updateTable("transfer")
    .set(heldColumns(args))
    .where("id", "=", args.id)
    .where("state", "=", "ready")
    .execute();
}

/**
 * Postpones transfers that fail beside another one of their account. Those of payments get a transaction of their own: gas that
 * it burns counts for their payer.
 */
export async function separateTransfers(
  db: Db,
  args: { ids: readonly string[]; error: string; now: Date },
): Promise<void> {
  if (args.ids.length === 0) return;
  await db
    .updateTable("transfer")
    .set({ ...heldColumns(args), alone: sql<boolean>`alone or purpose = 'payment'` })
    .where(sql<boolean>`id = any(${args.ids})`)
    .where("state", "=", "ready")
    .execute();
}

/** A buyer's transfer that is assigned to no transaction. */
export type UnassignedTransfer = Pick<Row, "id" | "payment_id" | "chain" | "token" | "payer" | "authorization_nonce">;

/** Locks the ready transfers of payments with these authorization nonces, on any chain, until the commit. */
export async function lockUnassigned(db: Db, nonces: readonly string[]): Promise<UnassignedTransfer[]> {
  return db
    .selectFrom("transfer")
    .select(["id", "payment_id", "chain", "token", "payer", "authorization_nonce"])
    .where(sql<boolean>`authorization_nonce = ${anyOf(nonces)}`)
    .where("state", "=", "ready")
    .where("purpose", "=", "payment")
    .orderBy("id")
    .forUpdate()
    .execute();
}

type Authorizations = { chain: string; nonces: readonly string[] };

/** Returns the transfers with these authorization nonces, to which movements of the chain may belong. */
export async function listByAuthorizations(db: Db, args: Authorizations): Promise<TransferRow[]> {
  return args.nonces.length === 0 ? [] : (await selectAuthorized(db, args).execute()).map(readFamilyRow);
}

/** Returns the same transfers, locked until the commit, so that their states cannot change before movements are assigned to them. */
export async function lockByAuthorizations(db: Db, args: Authorizations): Promise<TransferRow[]> {
  if (args.nonces.length === 0) return [];
  return (await selectAuthorized(db, args).orderBy("id").forUpdate().execute()).map(readFamilyRow);
}

function selectAuthorized(db: Db, { chain, nonces }: Authorizations) {
  return db
    .selectFrom("transfer")
    .select(transferColumns)
    .where("chain", "=", chain)
    .where(sql<boolean>`authorization_nonce = ${anyOf(nonces)}`);
}

/** Returns the transfers that are assigned to these nonces of lanes and are in one of `states` (`assigned` when unset). */
export async function listAssigned(
  db: Db,
  slots: readonly { lane_id: string; nonce: number }[],
  states: readonly TransferState[] = ["assigned"],
): Promise<TransferRow[]> {
  if (slots.length === 0) return [];
  const rows = await db
    .selectFrom("transfer")
    .select(transferColumns)
    .where("state", "in", states)
    .where(
      sql<boolean>`(lane_id, lane_nonce) in (
        select * from unnest(${slots.map((slot) => slot.lane_id)}::text[], ${slots.map((slot) => slot.nonce)}::bigint[]))`,
    )
    .execute();
  return rows.map(readFamilyRow);
}

/** Unassigns transfers from a nonce whose transaction did not make them. Each is retried alone, with backoff. */
export async function unassignTransfers(
  db: Db,
  args: { ids: readonly string[]; reason: string; now: Date },
): Promise<string[]> {
  return moveRows(db, "transfer", {
    ids: args.ids,
    from: "assigned",
    to: "ready",
    at: args.now,
    detail: { reason: args.reason },
    set: {
      lane_id: null,
      lane_nonce: null,
      alone: true,
      last_error: args.reason,
      retries: sql<number>`retries + 1`,
      due_at: backOff(args.now),
      hold_until: backOff(args.now),
    },
  });
}
