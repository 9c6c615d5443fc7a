import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** One side of a booking: positive is debit, negative is credit. The entries of a group sum to zero per asset. */
export type Entry = { account: string; asset: string; amount: bigint };
/**
 * One booking. `kind` and `subject` are its unique key, so that nothing is booked twice. `onChain` is its place on the
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

/** Inserts groups in one statement. Throws when one was booked before, or when one does not sum to zero. */
export async function insertGroups(db: Db, groups: readonly Group[], at: Date): Promise<void> {
  if (groups.length === 0) return;
  const rows = groups.map(({ kind, subject, onChain, note = null }, number) => ({
    number,
    kind,
    subject,
    note,
    ...onChain,
  }));
  const entries = groups.flatMap(({ entries }, number) => entries.map((entry) => ({ number, ...entry })));
  const column = <C extends keyof (typeof entries)[number]>(name: C) => entries.map((entry) => entry[name]);
  const { numAffectedRows } = await sql`
    with given as (
      select * from json_to_recordset(${JSON.stringify(rows)}::json) as given (
        number integer, kind text, subject text, chain text, block_number bigint, block_id text, tx_hash text,
        log_index integer, note text)
    ), booked as (
      insert into ledger_group (kind, subject, chain, block_number, block_id, tx_hash, log_index, note, at)
      select kind, subject, chain, block_number, block_id, tx_hash, log_index, note, ${at} from given order by number
      returning id, kind, subject
    )
    insert into ledger_entry (group_id, account, asset, amount)
    select b.id, e.account, e.asset, e.amount
    from unnest(${column("number")}::integer[], ${column("account")}::text[], ${column("asset")}::text[],
      ${column("amount")}::numeric[]) with ordinality as e (number, account, asset, amount, place)
    join given g on g.number = e.number join booked b on b.kind = g.kind and b.subject = g.subject
    order by e.place`.execute(db);
  if (numAffectedRows !== BigInt(entries.length)) throw new Error("an entry of a ledger group was not inserted");
}

/** Returns the groups that are not in the ledger yet, by their unique keys. */
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

/** Returns the entries that are booked under a group's unique key, in the order of booking, each with the group's note. */
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

/** Returns merchants' balances, without those that have never been credited. `converted` is what came in other assets. */
export async function listMerchantBalances(
  db: Db,
  keys: readonly Pick<Credit, "merchantId" | "asset">[],
): Promise<(Credit & { converted: bigint })[]> {
  if (keys.length === 0) return [];
  const { rows } = await sql<Credit & { converted: bigint }>`
    select merchant_id as "merchantId", asset, amount,
      (select coalesce(sum(s.amount), 0) from settlement s where s.merchant_id = b.merchant_id and s.asset = b.asset
        and s.converted and s.state in ('due', 'accumulating')) as converted
    from merchant_balance b where (merchant_id, asset) in (
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
