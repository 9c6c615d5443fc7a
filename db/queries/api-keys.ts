import { type Insertable, type Selectable, sql } from "kysely";
import { batchStatements } from "../batch-calls.ts";
import type { Db, Tables } from "../tables.ts";

export type ApiKeyRow = Selectable<Tables["api_key"]>;
type AppIdRow = Selectable<Tables["app_id"]>;

/** Inserts an API key. */
export async function insertApiKey(db: Db, row: Insertable<Tables["api_key"]>): Promise<void> {
  await db.insertInto("api_key").values(row).execute();
}

/** Inserts an app id. */
export async function insertAppId(db: Db, row: Insertable<Tables["app_id"]>): Promise<void> {
  await db.insertInto("app_id").values(row).execute();
}

/**
 * Returns an API key that is not revoked, by its hash, with the API version of its account. Concurrent calls share a
 * statement, because every request reads its key.
 */
export const findLiveApiKey: (db: Db, hash: Buffer) => Promise<(ApiKeyRow & { api_version: string }) | undefined> =
  batchStatements(async (db, hashes) => {
    const rows = await db
      .selectFrom("api_key as k")
      .innerJoin("account as a", "a.id", "k.account_id")
      .selectAll("k")
      .select("a.api_version")
      .where(sql<boolean>`k.hash = any(${hashes})`)
      .where("k.revoked_at", "is", null)
      .execute();
    return hashes.map((hash) => rows.find((row) => row.hash.equals(hash)));
  });

/** Returns an app id that is not revoked, with the API version of its account. */
export async function findLiveAppId(db: Db, id: string): Promise<(AppIdRow & { api_version: string }) | undefined> {
  return db
    .selectFrom("app_id as p")
    .innerJoin("account as a", "a.id", "p.account_id")
    .selectAll("p")
    .select("a.api_version")
    .where("p.id", "=", id)
    .where("p.revoked_at", "is", null)
    .executeTakeFirst();
}

/** Returns the API keys of an account in the order of creation, also revoked ones. */
export async function listApiKeys(db: Db, accountId: string): Promise<ApiKeyRow[]> {
  return db.selectFrom("api_key").selectAll().where("account_id", "=", accountId).orderBy("created_at").execute();
}

/** Returns the app ids of an account in the order of creation, also revoked ones. */
export async function listAppIds(db: Db, accountId: string): Promise<AppIdRow[]> {
  return db.selectFrom("app_id").selectAll().where("account_id", "=", accountId).orderBy("created_at").execute();
}

/** Revokes an API key or app id; keeps the time of an earlier revocation. Returns false when it does not exist. */
export async function revokeCredential(
  db: Db,
  args: { kind: "api_key" | "app_id"; id: string; at: Date },
): Promise<boolean> {
  const row = await db
    .updateTable(args.kind)
    .set({ revoked_at: sql`coalesce(revoked_at, ${args.at})` })
    .where("id", "=", args.id)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}
