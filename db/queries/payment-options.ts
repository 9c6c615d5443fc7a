import { type Selectable, sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { batchStatements, isTimeout } from "../batch-calls.ts";
import { type EvmRow, readFamilyRow, type SolanaRow } from "../chain-families.ts";
import { optionColumns } from "../columns.ts";
import { sortByText } from "../sort-by-text.ts";
import type { Db, Tables } from "../tables.ts";

type Row = Selectable<Tables["payment_option"]>;
export type EvmOptionRow = EvmRow<Row>;
export type SolanaOptionRow = SolanaRow<Row>;
/** A quote, as the buyer saw it. `kind` tells the chain families apart. */
export type OptionRow = EvmOptionRow | SolanaOptionRow;
/** A quote with the merchant's current destination (CAIP-10) for the quoted or owed asset; null when there is none. */
export type CurrentOption = OptionRow & { registered: string | null };
/** A new quote, with the next number of its payment, payer and asset. */
export type NewOption = Omit<Row, "blockhash_until">;

const allColumns = sql.join(optionColumns.map((column) => sql.ref(`o.${column}`)));

type PayersOf = { paymentId: string; payers: readonly string[] };

/** Returns the newest quote of a payment for each of these payers and each asset. Concurrent calls share a statement. */
export const listNewestOptions: (db: Db, of: PayersOf) => Promise<OptionRow[]> = batchStatements(
  async (db, asked: readonly PayersOf[]) => {
    const pairs = asked.flatMap(({ paymentId, payers }) => payers.map((payer) => ({ paymentId, payer })));
    const { rows } = await sql<Row>`
      select distinct on (o.payment_id, o.payer, o.asset) ${allColumns}
      from unnest(${pairs.map(({ paymentId }) => paymentId)}::text[], ${pairs.map(({ payer }) => payer)}::text[])
        as n (payment_id, payer)
      join payment_option o on o.payment_id = n.payment_id and o.payer = n.payer
      order by o.payment_id, o.payer, o.asset, o.number desc`.execute(db);
    const byPayment = Map.groupBy(rows.map(readFamilyRow), (row) => row.payment_id);
    return asked.map(({ paymentId, payers }) => {
      const found = byPayment.get(paymentId) ?? [];
      return found.filter(({ payer }) => payers.includes(payer));
    });
  },
);

/**
 * Inserts quotes of one payment and returns them. When another process inserts a quote with the same number at the same
 * time, returns that quote instead.
 */
export async function insertOptions(db: Db, rows: readonly NewOption[]): Promise<OptionRow[]> {
  const [first] = rows;
  if (!first) return [];
  const written = await insertRows(db, rows);
  const isWritten = ({ id }: NewOption) => written.has(id);
  const inserted = rows.filter(isWritten).map((row) => readFamilyRow({ ...row, blockhash_until: null }));
  if (inserted.length === rows.length) return inserted;
  const missing = rows.filter((row) => !isWritten(row));
  const names = new Set(missing.map(keyOf));
  const payers = [...new Set(missing.map(({ payer }) => payer))];
  const newest = await listNewestOptions(db, { paymentId: first.payment_id, payers });
  return [...inserted, ...newest.filter((row) => names.has(keyOf(row)))];
}

/** Inserts quotes and returns the ids of those that were inserted. Concurrent calls share a statement and its commit. */
const insertRows: (db: Db, rows: readonly NewOption[]) => Promise<ReadonlySet<string>> = batchStatements(
  async (db, lists: readonly (readonly NewOption[])[]) => {
    // The same order in every process, which avoids deadlocks between calls with the same accounts.
    const rows = sortByText(lists.flat(), (row) => `${row.payment_id} ${keyOf(row)}`);
    // Only columns that the rows have: a later release may have added others, which get their defaults.
    const columns = sql.join(Object.keys(rows[0] ?? {}).map((column) => sql.ref(column)));
    const { numAffectedRows } = await sql`
      insert into payment_option (${columns})
      select ${columns} from jsonb_array_elements(${toJson(rows)}::jsonb) as of_payment (quotes),
        jsonb_populate_recordset(jsonb_populate_record(null::payment_option, quotes -> 'all'), quotes -> 'each') r
      on conflict (payment_id, payer, asset, number) do nothing`.execute(db);
    const ids = rows.map(({ id }) => id);
    const written = new Set(Number(numAffectedRows) === ids.length ? ids : await listKnownIds(db, ids));
    return lists.map(() => written);
  },
  { sizeOf: (rows) => rows.length, isOnes: isTimeout },
);

/** Returns those of these ids that quotes have. */
async function listKnownIds(db: Db, ids: readonly string[]): Promise<string[]> {
  const found = await db
    .selectFrom("payment_option")
    .select("id")
    .where(sql<boolean>`id = ${anyOf(ids)}`)
    .execute();
  return found.map(({ id }) => id);
}

/**
 * Returns quotes as JSON by payment, in their order: first the columns that are equal in all of them, then the others of each. Most
 * are equal. Amounts are text, because JSON has no exact numbers.
 */
function toJson(rows: readonly NewOption[]): string {
  const byPayment = Map.groupBy(rows, ({ payment_id }) => payment_id);
  return JSON.stringify(
    [...byPayment.values()].map((quotes) => {
      const [first] = quotes;
      const columns = Object.keys(first ?? {}) as (keyof NewOption)[];
      const isEqual = (column: keyof NewOption) => quotes.every((quote) => quote[column] === first?.[column]);
      const [equal, different] = [columns.filter(isEqual), columns.filter((column) => !isEqual(column))];
      return { all: first && pick(first, equal), each: quotes.map((quote) => pick(quote, different)) };
    }),
  );
}

function pick(row: NewOption, columns: readonly (keyof NewOption)[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const column of columns) {
    const value = row[column];
    picked[column] = typeof value === "bigint" ? String(value) : value;
  }
  return picked;
}

const keyOf = ({ payer, asset }: Pick<NewOption, "payer" | "asset">) => `${payer} ${asset}`;

/** Returns a quote of a payment. */
export async function findOption(db: Db, args: { id: string; paymentId: string }): Promise<CurrentOption | undefined> {
  const row = await readOption(db, args.id);
  return row?.payment_id === args.paymentId ? row : undefined;
}

/** Reads a quote. Concurrent calls share a statement. */
const readOption = batchStatements(async (db: Db, ids: readonly string[]) => {
  const byId = new Map((await listOptionsById(db, ids)).map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id));
});

/** Stores until when the blockhash is valid that was just returned for a quote. */
export async function recordBlockhash(db: Db, args: { id: string; until: Date }): Promise<void> {
  await db.updateTable("payment_option").set({ blockhash_until: args.until }).where("id", "=", args.id).execute();
}

/** Returns quotes by id. */
export async function listOptionsById(db: Db, ids: readonly string[]): Promise<CurrentOption[]> {
  const rows = await selectCurrent(db)
    .where(sql<boolean>`o.id = ${anyOf(ids)}`)
    .execute();
  return rows.map(readFamilyRow);
}

/** Returns the quotes of attempts. */
export async function listOptionsOfAttempts(db: Db, attemptIds: readonly string[]): Promise<CurrentOption[]> {
  const ids = sql`select option_id from attempt where id = ${anyOf(attemptIds)}`;
  const rows = await selectCurrent(db).where(sql<boolean>`o.id = any(array(${ids}))`).execute();
  return rows.map(readFamilyRow);
}

/** Selects quotes (`o`) of payments (`p`) with the current destination of the merchant. */
function selectCurrent(db: Db) {
  return db
    .selectFrom("payment_option as o")
    .innerJoin("payment as p", "p.id", "o.payment_id")
    .leftJoin("settlement_destination as d", (join) =>
      join.onRef("d.merchant_id", "=", "p.merchant_id").on(sql<boolean>`d.asset = coalesce(o.owed_asset, o.asset)`),
    )
    .select(optionColumns.map((column) => `o.${column}` as const))
    .select("d.destination as registered");
}

/**
 * Deletes quotes that are no longer needed, and returns how many. Such a quote was renewed by another one, has no attempt,
 * ended before `over`, and its chain has been read up to `lateMs` (milliseconds) after its end. Keeps the newest quote of a
 * payer and asset, because it explains money that arrives late. Considers quotes whose renewal was created in `window`.
 */
export async function deleteRenewedOptions(
  db: Db,
  args: { window: { from: Date; to: Date }; over: Date; lateMs: number; limit: number },
): Promise<number> {
  const { window, over, lateMs, limit } = args;
  const end = sql`least(o.quoted_until, p.expires_at)`;
  const { numAffectedRows } = await sql`
    delete from payment_option where id in (
      select o.id from payment_option n
      join payment_option o
        on o.payment_id = n.payment_id and o.payer = n.payer and o.asset = n.asset and o.number = n.number - 1
      join payment p on p.id = o.payment_id
      left join chain_cursor c on c.chain = o.chain
      where n.number > 1 and n.created_at between ${window.from} and ${window.to} and ${end} < ${over}
        and (p.mode = 'test' or ${end} + ${lateMs}::float8 * interval '1 millisecond' < c.chain_time)
        and p.option_id is distinct from o.id
        and not exists (select from attempt a where a.payment_id = o.payment_id and a.option_id = o.id)
      order by n.created_at limit ${limit}
    )`.execute(db);
  return Number(numAffectedRows ?? 0n);
}

/** Returns true if a payment has a quote that the buyer's own transaction pays. */
export async function hasPushOption(db: Db, paymentId: string): Promise<boolean> {
  const push = await db
    .selectFrom("payment_option")
    .select("id")
    .where("payment_id", "=", paymentId)
    .where("kind", "=", "push")
    .executeTakeFirst();
  return push !== undefined;
}

/** A quote of a locked payment, with the payment's merchant, deadline, and amount (`value` in minor units of `unit`). */
export type LockedQuote = CurrentOption & { deadline: Date; merchant_id: string; unit: string; value: bigint };

/** The members of a quote that money which pays it has, too. `amount` in minor units. */
type Money = { authorization_nonce: string; token: string; payer: string; receiver: string; amount: bigint };

/**
 * Returns the quotes of a chain that money pays, and locks their live payments, in the order of their ids. All quotes of a payment
 * have one authorization nonce, and a holder of its link can request many of them, so the other members count as well.
 */
export async function lockPaidQuotes(
  db: Db,
  { chain, money }: { chain: string; money: readonly Money[] },
): Promise<LockedQuote[]> {
  const all = <C extends keyof Money>(column: C) => money.map((one) => one[column]);
  const quotes = await selectCurrent(db)
    .select(["p.expires_at as deadline", "p.merchant_id", "p.unit", "p.value"])
    .where("o.chain", "=", chain)
    .where(
      sql<boolean>`(o.authorization_nonce, o.token, o.payer, o.receiver, o.amount) in (
        select * from unnest(${all("authorization_nonce")}::text[], ${all("token")}::text[], ${all("payer")}::text[],
          ${all("receiver")}::text[], ${all("amount")}::numeric[]))`,
    )
    .where("p.mode", "=", "live")
    .orderBy("p.id")
    .forUpdate("p")
    .execute();
  return quotes.map(readFamilyRow);
}
