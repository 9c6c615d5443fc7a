import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";

export type AppIdRow = Selectable<Tables["app_id"]>;

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

/** Counts the app ids of an account and mode that are not revoked. */
export async function countLiveAppIds(db: Db, { accountId, mode }: { accountId: string; mode: Mode }): Promise<number> {
  const { count } = await db
    .selectFrom("app_id")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .where("revoked_at", "is", null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Returns app ids of an account, of both modes when none is given, the newest first, also revoked ones. */
export async function listAppIdRows(
  db: Db,
  args: { accountId: string; mode?: Mode; after?: readonly [string, string] | undefined; limit: number },
): Promise<AppIdRow[]> {
  const { accountId, mode, after, limit } = args;
  let query = db
    .selectFrom("app_id")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(limit);
  if (mode) query = query.where("mode", "=", mode);
  if (after) query = query.where(sql<boolean>`(created_at, id) < (${after[0]}::timestamptz, ${after[1]})`);
  return query.execute();
}

/**
 * Revokes an app id, with `owner` only one of this account and mode; keeps the time of an earlier revocation. Returns
 * undefined when it does not exist.
 */
export async function revokeAppId(
  db: Db,
  { id, at, owner }: { id: string; at: Date; owner?: { accountId: string; mode: Mode } | undefined },
): Promise<AppIdRow | undefined> {
  let query = db
    .updateTable("app_id")
    .set({ revoked_at: sql`coalesce(revoked_at, ${at})` })
    .where("id", "=", id);
  if (owner) query = query.where("account_id", "=", owner.accountId).where("mode", "=", owner.mode);
  return query.returningAll().executeTakeFirst();
}
