import { type Expression, type Selectable, sql, type UpdateObject } from "kysely";
import type { Db, Listing, ListPlaces, Tables } from "../tables.ts";

export type AccountCursor = Selectable<Tables["account_cursor"]>;
/** A lease on an account's history. Writes of an owner without the lease match no row. */
export type HeldAccount = { chain: string; account: string; owner: string };

/**
 * Where the reading of an account's history starts: after its `newest` transaction, which is of slot `upTo` or before, and which
 * endpoint `shownBy` alone has shown, where several are configured.
 */
export type HistoryStart = { newest: { signature: string; slot: number } | undefined; upTo?: number; shownBy?: string };

/** Starts reading an account's history. Keeps the cursor of an account that has one. */
export async function ensureAccountCursor(
  db: Db,
  { chain, account, newest, upTo, shownBy }: HistoryStart & { chain: string; account: string },
): Promise<void> {
  await db
    .insertInto("account_cursor")
    .values({
      chain,
      account,
      signature: newest?.signature ?? null,
      slot: newest?.slot ?? null,
      until_signature: null,
      shown_by: shownBy ?? null,
      listed_at: null,
      listed_slot: upTo ?? null,
      listing: null,
      relist_slot: null,
      relist_before: null,
      relist_at: null,
      read_at: null,
      read_slot: null,
      urgent_read_slot: null,
      owner: null,
      lease_until: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Returns the accounts of a chain whose history has a cursor. */
export async function listCursorAccounts(db: Db, chain: string): Promise<string[]> {
  const rows = await db.selectFrom("account_cursor").select("account").where("chain", "=", chain).execute();
  return rows.map(({ account }) => account);
}

/** Leases an account's history. Returns undefined while another owner has the lease, and for an account without a cursor. */
export async function takeAccount(
  db: Db,
  { chain, account, owner, now, until }: HeldAccount & { now: Date; until: Date },
): Promise<AccountCursor | undefined> {
  return db
    .updateTable("account_cursor")
    .set({ owner, lease_until: until })
    .where("chain", "=", chain)
    .where("account", "=", account)
    .where((eb) => eb.or([eb("owner", "is", null), eb("owner", "=", owner), eb("lease_until", "<=", now)]))
    .returningAll()
    .executeTakeFirst();
}

/** Releases an account's history. */
export async function releaseAccount(db: Db, held: HeldAccount): Promise<void> {
  await update(db, held, { owner: null, lease_until: null });
}

/**
 * A listing in progress (null ends it without a result), or a complete one. `relisted` is a listing of what only one endpoint has
 * listed: where it continues at each endpoint, or undefined at its end.
 */
export type ListingProgress =
  | { listing: Listing | null }
  | { complete: CompleteListing }
  | { relisted: { slot: number; places: ListPlaces | undefined } };

/**
 * A complete listing: the newest transaction that it found and one of an earlier slot (undefined where it found none), the endpoint
 * that alone has shown them, and when it began, with the final slot then, unless another endpoint is still waited for. `alone` says that
 * only one endpoint has made it.
 */
type CompleteListing = {
  newest: { signature: string; slot: number } | undefined;
  until: string | undefined;
  by: string | undefined;
  began: { at: Date; final: number } | undefined;
  alone: boolean;
};

/** Stores the progress of a listing. Returns false when another owner has the lease by now. */
export async function storeListing(db: Db, held: HeldAccount, progress: ListingProgress): Promise<boolean> {
  if ("listing" in progress) return update(db, held, { listing: progress.listing && JSON.stringify(progress.listing) });
  if ("relisted" in progress) {
    const { slot, places } = progress.relisted;
    // The operator may have set another slot meanwhile.
    const isSame = sql<boolean>`relist_slot = ${slot}`;
    if (places !== undefined) return update(db, held, { relist_before: JSON.stringify(places) }, isSame);
    return update(db, held, { relist_slot: null, relist_before: null, relist_at: null }, isSame);
  }
  const { newest, until, by, began, alone } = progress.complete;
  // What one endpoint alone has shown is no end for the lists that end at a transaction of two.
  const kept = sql<string | null>`case when shown_by is null or shown_by = ${by ?? null} then until_signature end`;
  const end = newest && {
    signature: newest.signature,
    slot: newest.slot,
    until_signature: until ?? kept,
    shown_by: by ?? null,
  };
  const reached = began && { listed_at: began.at, listed_slot: began.final };
  // The slots after the last complete listing were listed by one endpoint now.
  const relist = alone && {
    relist_slot: sql<number>`least(relist_slot, coalesce(listed_slot, slot, 0))`,
    relist_before: null,
    relist_at: sql<Date | null>`case when relist_slot is null then listed_at else relist_at end`,
  };
  return update(db, held, { ...end, ...reached, ...relist, listing: null });
}

/**
 * Has what came from a transaction on listed again at two endpoints, unless it is to be anyway. Returns false when another owner has the
 * lease by now.
 */
export async function relistFrom(
  db: Db,
  held: HeldAccount,
  { slot, listed_after: listedAfter }: { slot: number; listed_after: Date | null },
): Promise<boolean> {
  return update(db, held, {
    relist_slot: sql<number>`least(relist_slot, ${slot - 1}::bigint)`,
    relist_before: null,
    relist_at: sql<Date | null>`case when relist_slot < ${slot}::bigint then relist_at else ${listedAfter}::timestamptz end`,
  });
}

/** Updates the cursor. Returns false when the owner no longer has the lease. */
async function update(
  db: Db,
  { chain, account, owner }: HeldAccount,
  set: UpdateObject<Tables, "account_cursor">,
  where: Expression<boolean> = sql<boolean>`true`,
): Promise<boolean> {
  const result = await db
    .updateTable("account_cursor")
    .set(set)
    .where("chain", "=", chain)
    .where("account", "=", account)
    .where("owner", "=", owner)
    .where(where)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/**
 * Stores the time and the slot up to which an account's history has been read completely: those before its oldest unread
 * entry. Ignores entries with `unreadable` failed attempts or more.
 */
export async function updateReadProgress(
  db: Db,
  held: HeldAccount,
  { unreadable }: { unreadable: number },
): Promise<void> {
  // Two subqueries, so that each is one index lookup, however many transactions third parties send.
  const oldest = (urgent: boolean) => sql`
    select slot, listed_after from history_entry
    where chain = ${held.chain} and account = ${held.account} and urgent = ${urgent} and attempts_made < ${unreadable}
    order by slot limit 1`;
  await sql`
    update account_cursor c
    set read_at = case when oldest.slot is null then c.listed_at else oldest.listed_after end,
      read_slot = case when c.listed_slot is not null then least(c.listed_slot, oldest.slot - 1) end,
      urgent_read_slot = case when c.listed_slot is not null then least(c.listed_slot, named.slot - 1) end
    from (select) one
      left join lateral ((${oldest(true)}) union all (${oldest(false)}) order by slot limit 1) oldest on true
      left join lateral (${oldest(true)}) named on true
    where c.chain = ${held.chain} and c.account = ${held.account} and c.owner = ${held.owner}`.execute(db);
}

/** How far the histories of a chain's accounts have been read. */
export type HistoryProgress = {
  /** When the last complete listing began. */
  listedAt: Date | null;
  /** Every transaction up to this slot has been listed. */
  listedSlot: number | null;
  /** Every transaction that was final at this time has been read. */
  readAt: Date | null;
  /** Every transaction up to this slot has been read. */
  readSlot: number | null;
  /** Up to this slot, every transaction has been read whose memo, as the endpoint lists it, names a payment of ours. */
  urgentReadSlot: number | null;
};

/**
 * Returns the progress of the account that is furthest behind. A member is null before the first listing. Returns
 * undefined when no history of the chain is read.
 */
export async function findHistoryProgress(
  db: Db,
  { chain, accounts }: { chain: string; accounts: readonly string[] },
): Promise<HistoryProgress | undefined> {
  const rows = await db
    .selectFrom("account_cursor")
    .select(["listed_at", "listed_slot", "read_at", "read_slot", "urgent_read_slot"])
    .where("chain", "=", chain)
    .where("account", "in", accounts)
    .execute();
  if (rows.length === 0) return undefined;
  const least = <T extends number | Date>(all: readonly (T | null)[]): T | null =>
    all.reduce((found, one) => (found === null || one === null ? null : one < found ? one : found), all[0] ?? null);
  return {
    listedAt: least(rows.map((row) => row.listed_at)),
    listedSlot: least(rows.map((row) => row.listed_slot)),
    readAt: least(rows.map((row) => row.read_at)),
    readSlot: least(rows.map((row) => row.read_slot)),
    urgentReadSlot: least(rows.map((row) => row.urgent_read_slot)),
  };
}
