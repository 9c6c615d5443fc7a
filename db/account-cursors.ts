import type { Db } from "./tables.ts";

/** The newest signature that has been read of each account's history on a chain; accounts without a cursor are left out. */
export async function listAccountCursors(db: Db, chain: string): Promise<Map<string, string | null>> {
  const rows = await db.selectFrom("account_cursor").selectAll().where("chain", "=", chain).execute();
  return new Map(rows.map(({ account, signature }) => [account, signature]));
}

/** Begins to read an account's history after a signature; one that has begun keeps its place. */
export async function ensureAccountCursor(
  db: Db,
  row: { chain: string; account: string; signature: string | null },
): Promise<void> {
  await db
    .insertInto("account_cursor")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Goes on from another signature. False when somebody else has gone on meanwhile. */
export async function advanceAccountCursor(
  db: Db,
  args: { chain: string; account: string; from: string | null; to: string },
): Promise<boolean> {
  const result = await db
    .updateTable("account_cursor")
    .set({ signature: args.to })
    .where("chain", "=", args.chain)
    .where("account", "=", args.account)
    .where("signature", args.from === null ? "is" : "=", args.from)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}
