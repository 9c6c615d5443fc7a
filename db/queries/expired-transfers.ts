import { sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { readEvmRow, readSolanaRow } from "../chain-families.ts";
import type { Db } from "../tables.ts";
import { isBookable } from "./failed-bookings.ts";
import { isNamedByUnread } from "./history-entries.ts";
import type { EvmTransferRow, SolanaTransferRow } from "./transfers.ts";

/** An unfinished transfer whose authorization has expired. */
export type ExpiredTransfer = EvmTransferRow & { state: "ready" | "assigned" | "awaited" };

/** The last transfer of a page; the next page begins after it. */
export type ExpiredPage = Pick<ExpiredTransfer, "valid_before" | "id">;

/**
 * Returns unfinished transfers of an EVM chain whose authorization has expired at a time, Unix seconds, in pages by that
 * time.
 */
export async function listExpiredAuthorizations(
  db: Db,
  args: { chain: string; at: number; now: Date; limit: number; after: ExpiredPage | undefined },
): Promise<ExpiredTransfer[]> {
  const rows = await selectEndable(db, args)
    .where("state", "in", ["ready", "assigned", "awaited"])
    .where("valid_before", "<=", args.at)
    // Permit2 accepts a signature in the second of its deadline, which a later block can share; EIP-3009 no longer does.
    .where((eb) => eb.or([eb("kind", "<>", "permit2"), eb("valid_before", "<", args.at)]))
    .where(sql<boolean>`(valid_before, id) > (${args.after?.valid_before ?? -1}, ${args.after?.id ?? ""})`)
    .orderBy("valid_before")
    .orderBy("id")
    .limit(args.limit)
    .$narrowType<Pick<ExpiredTransfer, "state">>()
    .execute();
  return rows.map(readEvmRow);
}

/**
 * Returns ready transfers of a Solana cluster whose transaction can no longer be included at a block height, and those that were
 * accepted before a time, without those that an unread transaction names.
 */
export async function listExpiredReady(
  db: Db,
  args: { chain: string; height: number; acceptedBefore: Date; now: Date; limit: number },
): Promise<SolanaTransferRow[]> {
  const rows = await selectEndable(db, args)
    .where("state", "=", "ready")
    .where("last_valid_height", "is not", null)
    .where((eb) => eb.or([eb("last_valid_height", "<", args.height), eb("created_at", "<", args.acceptedBefore)]))
    .where(sql<boolean>`not ${isNamedByUnread("transfer")}`)
    .orderBy("last_valid_height")
    .limit(args.limit)
    .execute();
  return rows.map(readSolanaRow);
}

/**
 * How long after a payment's deadline, or after money that names it was first observed, money that is not final keeps a transfer from ending,
 * milliseconds: an endpoint may be out so long.
 */
const LONGEST_WAIT_MS = 86_400_000;

/**
 * SQL: money that makes the movement of a quote of a transfer's payment, and moved before its deadline, is not final yet. It pays then, or
 * is an exception. One endpoint may have invented it, and invent more, so this ends a day after the deadline, or after the first money that
 * names the payment was observed: no worker may have run for long. `name` is the alias of `transfer`.
 */
export const isAwaitingMoney = (name: string, now: Date) => sql<boolean>`exists (
  select from observation s join payment p on p.id = ${sql.ref(`${name}.payment_id`)}
  join payment_option o on o.payment_id = p.id
  where s.authorization_nonce = ${sql.ref(`${name}.authorization_nonce`)} and s.transfer_id is null and not s.orphaned
    and not s.booked and coalesce(s.moved_at <= p.expires_at, true)
    and (o.chain, o.authorization_nonce, o.token, o.payer, o.receiver, o.amount)
      = (s.chain, s.authorization_nonce, s.token, s.payer, s.receiver, s.amount)
    and greatest(p.expires_at, (select min(f.observed_at) from observation f
      where f.authorization_nonce = s.authorization_nonce)) > ${new Date(now.getTime() - LONGEST_WAIT_MS)})`;

/**
 * Locks transfers until the commit, and returns the ids of those that may end: no other money may pay their payments once it is final.
 * Who records money holds the same locks, so this overlooks none.
 */
export async function lockEndable(db: Db, ids: readonly string[], now: Date): Promise<ReadonlySet<string>> {
  await sql`select id from transfer where id = ${anyOf(ids)} order by id for update`.execute(db);
  const { rows } = await sql<{ id: string }>`
    select t.id from transfer t where t.id = ${anyOf(ids)} and not ${isAwaitingMoney("t", now)}`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/**
 * Returns the ids of those of these transfers whose payments other money may pay: money that is not final yet, or what a transaction moves
 * that names them and is not read yet.
 */
export async function listPaidBeside(
  db: Db,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const { rows } = await sql<{ id: string }>`select id from transfer where id = ${anyOf(ids)}
    and (${isAwaitingMoney("transfer", now)} or ${isNamedByUnread("transfer")})`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** Selects transfers without those whose end failed to be booked recently, and those whose payment waits for money to be final. */
function selectEndable(db: Db, { chain, now }: { chain: string; now: Date }) {
  return db
    .selectFrom("transfer")
    .selectAll()
    .where("chain", "=", chain)
    .where(sql<boolean>`not ${isAwaitingMoney("transfer", now)}`)
    .where(isBookable("ended", { chain: "transfer.chain", subject: sql.ref("transfer.id") }));
}
