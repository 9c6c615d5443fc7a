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
  args: { chain: string; at: number; limit: number; after: ExpiredPage | undefined },
): Promise<ExpiredTransfer[]> {
  const rows = await selectEndable(db, args.chain)
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
 * Returns ready transfers of a Solana cluster whose transaction can no longer be included at a block height, without those that an
 * unread transaction names.
 */
export async function listExpiredReady(
  db: Db,
  args: { chain: string; height: number; limit: number },
): Promise<SolanaTransferRow[]> {
  const rows = await selectEndable(db, args.chain)
    .where("state", "=", "ready")
    .where("last_valid_height", "<", args.height)
    .where(sql<boolean>`not ${isNamedByUnread("transfer")}`)
    .orderBy("last_valid_height")
    .limit(args.limit)
    .execute();
  return rows.map(readSolanaRow);
}

/**
 * SQL: money that names a transfer's payment and moved before its deadline is not final yet. It pays then, or is an exception.
 * `name` is the alias of `transfer`.
 */
export const isAwaitingMoney = (name: string) => sql<boolean>`exists (
  select from observation s join payment p on p.id = ${sql.ref(`${name}.payment_id`)}
  where s.authorization_nonce = ${sql.ref(`${name}.authorization_nonce`)} and s.transfer_id is null and not s.orphaned
    and not s.booked and coalesce(s.moved_at <= p.expires_at, true))`;

/**
 * Locks transfers until the commit, and returns the ids of those that may end: no other money may pay their payments once it is final.
 * Who records money holds the same locks, so this overlooks none.
 */
export async function lockEndable(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  await sql`select id from transfer where id = ${anyOf(ids)} order by id for update`.execute(db);
  const { rows } = await sql<{ id: string }>`
    select t.id from transfer t where t.id = ${anyOf(ids)} and not ${isAwaitingMoney("t")}`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** Selects transfers without those whose end failed to be booked recently, and those whose payment waits for money to be final. */
function selectEndable(db: Db, chain: string) {
  return db
    .selectFrom("transfer")
    .selectAll()
    .where("chain", "=", chain)
    .where(sql<boolean>`not ${isAwaitingMoney("transfer")}`)
    .where(isBookable("ended", { chain: "transfer.chain", subject: sql.ref("transfer.id") }));
}
