import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";
import { statementTogether } from "./together.ts";

export type OptionRow = Selectable<Tables["payment_option"]>;

/**
 * Writes options, or gives the ones that are there: a payer has one option per payment and asset, however often it is
 * asked for, so that what was signed stays good. What the payer still has to allow, and until when it may confirm, are
 * as they are now. An amount at a price stays as it is until its quote has run out, and is a new one then.
 */
export async function upsertOptions(
  db: Db,
  rows: readonly Insertable<Tables["payment_option"]>[],
): Promise<OptionRow[]> {
  if (rows.length === 0) return [];
  return (
    db
      .insertInto("payment_option")
      // In one order for everybody, so that two calls with the same accounts cannot wait for each other.
      .values(rows.toSorted((a, b) => (`${a.payer} ${a.asset}` < `${b.payer} ${b.asset}` ? -1 : 1)))
      .onConflict((conflict) =>
        conflict.columns(["payment_id", "payer", "asset"]).doUpdateSet((eb) => ({
          account: eb.ref("excluded.account"),
          allowance: eb.ref("excluded.allowance"),
          expires_at: sql<Date | null>`least(excluded.expires_at, ${quoted("quoted_until")})`,
          ...Object.fromEntries(ofQuote.map((column) => [column, quoted(column)])),
        })),
      )
      .returningAll()
      .execute()
  );
}

/** What changes with a new quote. */
const ofQuote = ["amount", "fee", "fee_fixed", "fee_points", "rate", "quoted_until", "owed_amount"] as const;

/** SQL: as it was while the quote holds (or there is none), and new afterwards. */
function quoted(column: (typeof ofQuote)[number]) {
  return sql`case when payment_option.quoted_until <= excluded.created_at
    then ${sql.ref(`excluded.${column}`)} else ${sql.ref(`payment_option.${column}`)} end`;
}

/** An option of a payment. */
export async function findOption(db: Db, args: { id: string; paymentId: string }): Promise<OptionRow | undefined> {
  const row = await readOption(db, args.id);
  return row?.payment_id === args.paymentId ? row : undefined;
}

/** Confirms of the same moment share a statement. */
const readOption = statementTogether(async (db: Db, ids: readonly string[]) => {
  const byId = new Map((await listOptionsById(db, ids)).map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id));
});

/** Gives an option until a later time. */
export async function extendOption(db: Db, args: { id: string; expiresAt: Date }): Promise<void> {
  await db.updateTable("payment_option").set({ expires_at: args.expiresAt }).where("id", "=", args.id).execute();
}

/** Options by id. */
export async function listOptionsById(db: Db, ids: readonly string[]): Promise<OptionRow[]> {
  return db.selectFrom("payment_option").selectAll().where(sql<boolean>`id = any(${ids})`).execute();
}
