import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";

type AppIdRow = Selectable<Tables["app_id"]>;

/** Inserts an app id. */
export async function insertAppId(db: Db, row: Insertable<Tables["app_id"]>): Promise<void> {
  await db.insertInto("app_id").values(row).execute();
}

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

/** Returns the app ids of an account in the order of creation, also revoked ones. */
export async function listAppIds(db: Db, accountId: string): Promise<AppIdRow[]> {
  return db.selectFrom("app_id").selectAll().where("account_id", "=", accountId).orderBy("created_at").execute();
}

/** Revokes an app id; keeps the time of an earlier revocation. Returns false when it does not exist. */
export async function revokeAppId(db: Db, { id, at }: { id: string; at: Date }): Promise<boolean> {
  const row = await db
    .updateTable("app_id")
    .set({ revoked_at: sql`coalesce(revoked_at, ${at})` })
    .where("id", "=", id)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}
