import type { Insertable, Selectable } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";

type FrameOriginRow = Pick<Selectable<Tables["frame_origin"]>, "origin" | "created_at">;

/** Inserts an origin of an account. Keeps an origin that exists. */
export async function insertFrameOrigin(db: Db, row: Insertable<Tables["frame_origin"]>): Promise<void> {
  await db
    .insertInto("frame_origin")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Returns the origins of an account in alphabetical order. */
export async function listFrameOriginRows(db: Db, accountId: string): Promise<FrameOriginRow[]> {
  return db
    .selectFrom("frame_origin")
    .select(["origin", "created_at"])
    .where("account_id", "=", accountId)
    .orderBy("origin")
    .execute();
}

/** Deletes an origin of an account. Returns false when the account does not have it. */
export async function deleteFrameOrigin(db: Db, args: { accountId: string; origin: string }): Promise<boolean> {
  const row = await db
    .deleteFrom("frame_origin")
    .where("account_id", "=", args.accountId)
    .where("origin", "=", args.origin)
    .returning("origin")
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the origins of a payment's account in alphabetical order. */
export async function listOriginsOfPayment(db: Db, args: { paymentId: string; mode: Mode }): Promise<string[]> {
  const rows = await db
    .selectFrom("payment as p")
    .innerJoin("frame_origin as f", "f.account_id", "p.account_id")
    .select("f.origin")
    .where("p.id", "=", args.paymentId)
    .where("p.mode", "=", args.mode)
    .orderBy("f.origin")
    .execute();
  return rows.map(({ origin }) => origin);
}
