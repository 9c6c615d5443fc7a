import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";

type AccountRow = Selectable<Tables["account"]>;

/** Inserts an account. */
export async function insertAccount(db: Db, row: Insertable<Tables["account"]>): Promise<void> {
  await db.insertInto("account").values(row).execute();
}

/**
 * Locks an account until the commit; other transactions can still insert rows that refer to it. Returns false when the
 * account does not exist.
 */
export async function lockAccount(db: Db, id: string): Promise<boolean> {
  const row = await db.selectFrom("account").select("id").where("id", "=", id).forNoKeyUpdate().executeTakeFirst();
  return row !== undefined;
}

/** Returns an account, locked until the commit; other transactions can still insert rows that refer to it. */
export async function findAccountForUpdate(db: Db, id: string): Promise<AccountRow | undefined> {
  return db.selectFrom("account").selectAll().where("id", "=", id).forNoKeyUpdate().executeTakeFirst();
}

/** An account with the number of its merchants that are not deleted, and of its keys that are not revoked. */
type AccountWithCounts = AccountRow & { merchants: number; keys: number };

/** Returns accounts, newest first, or the account with the given id. */
export async function listAccountsWithCounts(db: Db, id?: string): Promise<AccountWithCounts[]> {
  const { rows } = await sql<AccountWithCounts>`
    select a.*,
      (select count(*)::int from merchant m where m.account_id = a.id and m.deleted_at is null) as merchants,
      (select count(*)::int from api_key k where k.account_id = a.id and k.revoked_at is null) as keys
    from account a ${id === undefined ? sql`` : sql`where a.id = ${id}`} order by a.created_at desc, a.id`.execute(db);
  return rows;
}

/** Sets how long changes of destinations of an account's merchants wait. Changes that wait already keep their time. */
export async function updateDestinationWaitingHours(db: Db, args: { accountId: string; hours: number }): Promise<void> {
  await db
    .updateTable("account")
    .set({ destination_waiting_hours: args.hours })
    .where("id", "=", args.accountId)
    .execute();
}

/** Sets an account's API version. Returns false when the account does not exist or has a newer version. */
export async function raiseApiVersion(db: Db, args: { accountId: string; version: string }): Promise<boolean> {
  const row = await db
    .updateTable("account")
    .set({ api_version: args.version })
    .where("id", "=", args.accountId)
    .where("api_version", "<=", args.version)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}
