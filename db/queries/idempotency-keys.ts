import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";

type Row = Selectable<Tables["idempotency"]>;
export type IdempotencyKey = Pick<Row, "account_id" | "mode" | "merchant_id" | "operation" | "key">;

/**
 * Inserts a key without a response. Returns false when the key exists. Blocks while another transaction holds the key.
 */
export async function claimKey(
  db: Db,
  row: Omit<Insertable<Tables["idempotency"]>, "status" | "response_body">,
): Promise<boolean> {
  const claimed = await db
    .insertInto("idempotency")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return claimed.numInsertedOrUpdatedRows === 1n;
}

/** Stores the response to a key's request. */
export async function recordResponse(
  db: Db,
  { account_id, mode, merchant_id, operation, key }: IdempotencyKey,
  response: { status: number; response_body: string },
): Promise<void> {
  await db
    .updateTable("idempotency")
    .set(response)
    .where("account_id", "=", account_id)
    .where("mode", "=", mode)
    .where("merchant_id", "=", merchant_id)
    .where("operation", "=", operation)
    .where("key", "=", key)
    .execute();
}

/** Returns the digest of a key's request and the response to it. */
export async function findResponse(
  db: Db,
  { account_id, mode, merchant_id, operation, key }: IdempotencyKey,
): Promise<Pick<Row, "digest" | "status" | "response_body"> | undefined> {
  return db
    .selectFrom("idempotency")
    .select(["digest", "status", "response_body"])
    .where("account_id", "=", account_id)
    .where("mode", "=", mode)
    .where("merchant_id", "=", merchant_id)
    .where("operation", "=", operation)
    .where("key", "=", key)
    .executeTakeFirst();
}

/** Deletes keys that were created before a time, oldest first, and returns how many. */
export async function deleteOldKeys(db: Db, args: { before: Date; limit: number }): Promise<number> {
  const { before, limit } = args;
  // By the rows' places: a join by the five columns of the primary key would read the whole table.
  const { numAffectedRows = 0n } = await sql`
    delete from idempotency where created_at < ${before} and ctid = any(array(
      select ctid from idempotency where created_at < ${before} order by created_at limit ${limit}))`.execute(db);
  return Number(numAffectedRows);
}
