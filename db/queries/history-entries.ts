import { type NotNull, type Selectable, sql } from "kysely";
import type { Db, StoredReading, Tables } from "../tables.ts";
import type { HeldAccount } from "./account-cursors.ts";

export type HistoryEntry = Selectable<Tables["history_entry"]>;
/** An entry that one endpoint has shown, and that waits for another one. */
export type WaitingEntry = HistoryEntry & { reading: StoredReading };

/** Stores transactions that a listing found, until they are read. Keeps entries that exist. */
export async function insertEntries(
  db: Db,
  { chain, account }: HeldAccount,
  entries: readonly Pick<HistoryEntry, "signature" | "slot" | "listed_after" | "nonces" | "urgent" | "due_at">[],
): Promise<void> {
  if (entries.length === 0) return;
  await db
    .insertInto("history_entry")
    .values(entries.map((entry) => ({ ...entry, chain, account, last_error: null })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Returns those of these natural keys that belong to a payment option or a transfer. */
export async function keepKnownNonces(db: Db, chain: string, nonces: readonly string[]): Promise<Set<string>> {
  if (nonces.length === 0) return new Set();
  const { rows } = await sql<{ nonce: string }>`
    select authorization_nonce as nonce from payment_option
      where chain = ${chain} and authorization_nonce = any(${nonces})
    union select authorization_nonce from transfer
      where chain = ${chain} and authorization_nonce = any(${nonces})`.execute(db);
  return new Set(rows.map(({ nonce }) => nonce));
}

/** SQL: a transaction that is not read yet names this row, a payment option or a transfer. */
export const isNamedByUnread = (row: "o" | "transfer") => sql<boolean>`exists (select from history_entry h
  where h.chain = ${sql.ref(`${row}.chain`)} and h.urgent and ${sql.ref(`${row}.authorization_nonce`)} = any(h.nonces))`;

type Due = { chain: string; account: string; now: Date; limit: number };

/** Returns the entries of an account to read next: urgent ones first, then the oldest. Leaves out those that wait for an endpoint. */
export async function listDueEntries(db: Db, args: Due): Promise<HistoryEntry[]> {
  return selectDue(db, args).where("reading", "is", null).orderBy("slot").orderBy("signature").execute();
}

/** Returns the entries of an account to compare next: urgent ones first, then those that have been due for longest. */
export async function listWaitingEntries(db: Db, args: Due): Promise<WaitingEntry[]> {
  const waiting = selectDue(db, args).where("reading", "is not", null).orderBy("due_at");
  return waiting.$narrowType<{ reading: NotNull }>().execute();
}

/** Selects due entries of an account, urgent ones first. */
function selectDue(db: Db, { chain, account, now, limit }: Due) {
  return db
    .selectFrom("history_entry")
    .selectAll()
    .where("chain", "=", chain)
    .where("account", "=", account)
    .where("due_at", "<=", now)
    .orderBy("urgent", "desc")
    .limit(limit);
}

/** Stores what one endpoint has shown of entries, which wait for another one from now on. */
export async function storeReadings(
  db: Db,
  { chain, account }: { chain: string; account: string },
  shown: readonly { signature: string; reading: StoredReading }[],
): Promise<void> {
  if (shown.length === 0) return;
  const signatures = shown.map(({ signature }) => signature);
  const readings = shown.map(({ reading }) => JSON.stringify(reading));
  await sql`
    update history_entry h set reading = shown.reading::jsonb
    from unnest(${signatures}::text[], ${readings}::text[]) shown (signature, reading)
    where h.chain = ${chain} and h.account = ${account} and h.signature = shown.signature`.execute(db);
}

/** Makes entries wait no longer, so that they are read again. */
export async function forgetReadings(
  db: Db,
  { chain, account }: { chain: string; account: string },
  signatures: readonly string[],
): Promise<void> {
  if (signatures.length === 0) return;
  await db
    .updateTable("history_entry")
    .set({ reading: null })
    .where("chain", "=", chain)
    .where("account", "=", account)
    .where(sql<boolean>`signature = any(${signatures})`)
    .execute();
}

/**
 * Deletes entries in the transaction that records their movements. Returns the signatures that were still there, which no
 * other worker has recorded.
 */
export async function takeEntries(
  db: Db,
  { chain, account }: { chain: string; account: string },
  signatures: readonly string[],
): Promise<Set<string>> {
  const rows = await db
    .deleteFrom("history_entry")
    .where("chain", "=", chain)
    .where("account", "=", account)
    .where(sql<boolean>`signature = any(${signatures})`)
    .returning("signature")
    .execute();
  return new Set(rows.map(({ signature }) => signature));
}

/** Stores why entries could not be read or recorded, how many attempts were made for each, and when to retry. */
export async function recordEntryErrors(
  db: Db,
  { chain, account }: { chain: string; account: string },
  signatures: readonly string[],
  { error, attemptsMade, dueAt }: { error: string; attemptsMade: number; dueAt: Date },
): Promise<void> {
  await db
    .updateTable("history_entry")
    .set({ attempts_made: attemptsMade, last_error: error, due_at: dueAt })
    .where("chain", "=", chain)
    .where("account", "=", account)
    .where(sql<boolean>`signature = any(${signatures})`)
    .execute();
}

/** Makes an entry name nothing, so that no payment and no payout waits for it. */
export async function releaseNamed(
  db: Db,
  { chain, account, signature }: Pick<HistoryEntry, "chain" | "account" | "signature">,
): Promise<void> {
  await db
    .updateTable("history_entry")
    .set({ nonces: [], urgent: false })
    .where("chain", "=", chain)
    .where("account", "=", account)
    .where("signature", "=", signature)
    .execute();
}

/** Returns the number of unread entries of each chain, and how many of them have `unreadable` failed attempts or more. */
export async function countEntries(
  db: Db,
  { unreadable }: { unreadable: number },
): Promise<{ chain: string; unread: number; unreadable: number }[]> {
  const { rows } = await sql<{ chain: string; unread: number; unreadable: number }>`
    select chain, count(*)::int as unread, (count(*) filter (where attempts_made >= ${unreadable}))::int as unreadable
    from history_entry group by chain`.execute(db);
  return rows;
}
