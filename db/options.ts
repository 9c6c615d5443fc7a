import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";

export type OptionRow = Selectable<Tables["payment_option"]>;

/**
 * Writes options, or gives the ones that are there: a payer has one option per payment and asset, however often it is
 * asked for, so that what was signed stays good. What the payer still has to allow is as it is now.
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
        conflict
          .columns(["payment_id", "payer", "asset"])
          .doUpdateSet((eb) => ({ account: eb.ref("excluded.account"), allowance: eb.ref("excluded.allowance") })),
      )
      .returningAll()
      .execute()
  );
}

/** An option of a payment. */
export async function findOption(db: Db, args: { id: string; paymentId: string }): Promise<OptionRow | undefined> {
  return db
    .selectFrom("payment_option")
    .selectAll()
    .where("id", "=", args.id)
    .where("payment_id", "=", args.paymentId)
    .executeTakeFirst();
}

/** Options by id. */
export async function listOptionsById(db: Db, ids: readonly string[]): Promise<OptionRow[]> {
  return db.selectFrom("payment_option").selectAll().where(sql<boolean>`id = any(${ids})`).execute();
}
