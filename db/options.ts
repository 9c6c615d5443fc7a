import { type Selectable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";
import { statementTogether } from "./together.ts";

/** A quote as it was shown to a buyer. */
export type OptionRow = Selectable<Tables["payment_option"]>;
/** A quote with where its merchant is paid in its asset (or in the asset that is owed) now; null for nowhere. */
export type CurrentOption = OptionRow & { registered: string | null };
/** What a quote says, under the next number of its payment, payer and asset. */
export type NewOption = Omit<OptionRow, "blockhash_until">;

/** The newest quotes of these payers for a payment, one for each asset. */
export async function listNewestOptions(
  db: Db,
  { paymentId, payers }: { paymentId: string; payers: readonly string[] },
): Promise<OptionRow[]> {
  return db
    .selectFrom("payment_option")
    .selectAll()
    .distinctOn(["payer", "asset"])
    .where("payment_id", "=", paymentId)
    .where(sql<boolean>`payer = any(${payers})`)
    .orderBy("payer")
    .orderBy("asset")
    .orderBy("number", "desc")
    .execute();
}

/**
 * Writes quotes and returns them. Where another process has written a quote with the same number at this moment, that one
 * is returned instead.
 */
export async function insertOptions(db: Db, rows: readonly NewOption[]): Promise<OptionRow[]> {
  const [first] = rows;
  if (!first) return [];
  const inserted = await db
    .insertInto("payment_option")
    // In one order in every process, so that two calls with the same accounts cannot wait for each other.
    .values(
      rows
        .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
        .map((row) => ({ ...row, allowance: row.allowance && JSON.stringify(row.allowance) })),
    )
    .onConflict((conflict) => conflict.columns(["payment_id", "payer", "asset", "number"]).doNothing())
    .returningAll()
    .execute();
  if (inserted.length === rows.length) return inserted;
  const written = new Set(inserted.map(keyOf));
  const missing = new Set(rows.map(keyOf)).difference(written);
  const payers = rows.filter((row) => missing.has(keyOf(row))).map(({ payer }) => payer);
  const newest = await listNewestOptions(db, { paymentId: first.payment_id, payers });
  return [...inserted, ...newest.filter((row) => missing.has(keyOf(row)))];
}

const keyOf = ({ payer, asset }: Pick<OptionRow, "payer" | "asset">) => `${payer} ${asset}`;

/** A quote of a payment. */
export async function findOption(db: Db, args: { id: string; paymentId: string }): Promise<CurrentOption | undefined> {
  const row = await readOption(db, args.id);
  return row?.payment_id === args.paymentId ? row : undefined;
}

/** Confirms of the same moment share a statement. */
const readOption = statementTogether(async (db: Db, ids: readonly string[]) => {
  const byId = new Map((await listOptionsById(db, ids)).map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id));
});

/** Notes until when the blockhash is good that was handed out for a quote now. */
export async function noteBlockhash(db: Db, args: { id: string; until: Date }): Promise<void> {
  await db.updateTable("payment_option").set({ blockhash_until: args.until }).where("id", "=", args.id).execute();
}

/** Quotes by id. */
export async function listOptionsById(db: Db, ids: readonly string[]): Promise<CurrentOption[]> {
  return selectCurrent(db).where(sql<boolean>`o.id = any(${ids})`).execute();
}

/** Selects quotes (`o`) of payments (`p`) with where their merchants are paid now. */
export function selectCurrent(db: Db) {
  return db
    .selectFrom("payment_option as o")
    .innerJoin("payment as p", "p.id", "o.payment_id")
    .leftJoin("settlement_destination as d", (join) =>
      join.onRef("d.merchant_id", "=", "p.merchant_id").on(sql<boolean>`d.asset = coalesce(o.owed_asset, o.asset)`),
    )
    .selectAll("o")
    .select("d.destination as registered");
}

/**
 * Deletes quotes that can matter no more, and returns how many: renewed by another one, signed by nobody, over since
 * before `over`, and the chain has been read up to `lateMs` (milliseconds) after their end. The newest quote of a payer and
 * asset stays, because it explains money that comes late. Considers quotes whose renewal was written in `window`.
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
