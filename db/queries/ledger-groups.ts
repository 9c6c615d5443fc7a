import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** One side of a booking: positive is debit, negative is credit. The entries of a group sum to zero per asset. */
export type Entry = { account: string; asset: string; amount: bigint };
/**
 * One booking. `kind` and `subject` are its natural key, so that nothing is booked twice. `onChain` is its place on the
 * chain, when it has one.
 */
export type Group = {
  kind: string;
  subject: string;
  entries: readonly Entry[];
  note?: string | undefined;
  onChain?: {
    chain: string;
    block_number: number;
    block_id: string | null;
    tx_hash: string | null;
    log_index: number | null;
  };
};

/** Groups per statement, because Postgres limits the number of parameters. */
const CHUNK = 1_000;

/** Inserts groups. Throws when one was booked before, and at the commit when one does not sum to zero. */
export async function insertGroups(db: Db, groups: readonly Group[], at: Date): Promise<void> {
  for (let from = 0; from < groups.length; from += CHUNK) await insertChunk(db, groups.slice(from, from + CHUNK), at);
}

/** Returns the groups that are not in the ledger yet, by their natural keys. */
export async function keepNewGroups(db: Db, groups: readonly Group[]): Promise<Group[]> {
  if (groups.length === 0) return [];
  const { rows } = await sql<{ kind: string; subject: string }>`
    select kind, subject from ledger_group where (kind, subject) in (
      select * from unnest(${groups.map(({ kind }) => kind)}::text[], ${groups.map(({ subject }) => subject)}::text[]))`.execute(
    db,
  );
  const known = new Set(rows.map(({ kind, subject }) => `${kind} ${subject}`));
  return groups.filter(({ kind, subject }) => !known.has(`${kind} ${subject}`));
}

/** Returns the entries that are booked under a group's natural key, in the order of booking, each with the group's note. */
export async function listBookedEntries(
  db: Db,
  { kind, subject }: Pick<Group, "kind" | "subject">,
): Promise<(Entry & { note: string | null })[]> {
  return db
    .selectFrom("ledger_group as g")
    .innerJoin("ledger_entry as e", "e.group_id", "g.id")
    .select(["e.account", "e.asset", "e.amount", "g.note"])
    .where("g.kind", "=", kind)
    .where("g.subject", "=", subject)
    .orderBy("e.id")
    .execute();
}

async function insertChunk(db: Db, groups: readonly Group[], at: Date): Promise<void> {
  const rows = await db
    .insertInto("ledger_group")
    .values(
      groups.map(({ kind, subject, onChain, note }) => ({
        kind,
        subject,
        chain: onChain?.chain ?? null,
        block_number: onChain?.block_number ?? null,
        block_id: onChain?.block_id ?? null,
        tx_hash: onChain?.tx_hash ?? null,
        log_index: onChain?.log_index ?? null,
        note: note ?? null,
        at,
      })),
    )
    .returning(["id", "kind", "subject"])
    .execute();
  const ids = new Map(rows.map((row) => [`${row.kind} ${row.subject}`, row.id]));
  const entries = groups.flatMap(({ kind, subject, entries }) => {
    const group_id = ids.get(`${kind} ${subject}`);
    if (group_id === undefined) throw new Error(`ledger group ${kind} ${subject} was not inserted`);
    return entries.map((entry) => ({ group_id, ...entry }));
  });
  await db.insertInto("ledger_entry").values(entries).execute();
}

/** An amount for a merchant's balance, minor units. */
export type Credit = { merchantId: string; asset: string; amount: bigint };

/**
 * Credits merchants' balances and reserves the given number of settlement numbers with each credit. Returns the first
 * number of each credit, in order. Updates the rows in a fixed order, which avoids deadlocks between bookings.
 */
export async function creditMerchants(
  db: Db,
  credits: readonly (Credit & { settlements: number })[],
): Promise<number[]> {
  const first = new Map<Credit, number>();
  for (const credit of credits.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    const { merchantId, asset, amount, settlements } = credit;
    const { rows } = await sql<{ next: number }>`
      insert into merchant_balance as b (merchant_id, asset, amount, next_settlement)
      values (${merchantId}, ${asset}, ${amount}, ${settlements + 1})
      on conflict (merchant_id, asset) do update
      set amount = b.amount + excluded.amount, next_settlement = b.next_settlement + ${settlements}
      returning next_settlement as next`.execute(db);
    first.set(credit, (rows[0]?.next ?? 0) - settlements);
  }
  return credits.map((credit) => first.get(credit) ?? 0);
}

const keyOf = ({ merchantId, asset }: Credit) => `${merchantId} ${asset}`;

/** Returns merchants' balances, without those that have never been credited. */
export async function listMerchantBalances(
  db: Db,
  keys: readonly Pick<Credit, "merchantId" | "asset">[],
): Promise<Credit[]> {
  if (keys.length === 0) return [];
  const { rows } = await sql<Credit>`
    select merchant_id as "merchantId", asset, amount from merchant_balance where (merchant_id, asset) in (
      select * from unnest(${keys.map(({ merchantId }) => merchantId)}::text[], ${keys.map(({ asset }) => asset)}::text[]))`.execute(
    db,
  );
  return rows;
}

/** Debits a merchant's balance. Returns false and changes nothing when the balance is too low. */
export async function debitMerchant(db: Db, debit: Credit): Promise<boolean> {
  const result = await db
    .updateTable("merchant_balance")
    .set({ amount: sql`amount - ${debit.amount}` })
    .where("merchant_id", "=", debit.merchantId)
    .where("asset", "=", debit.asset)
    .where("amount", ">=", debit.amount)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}
