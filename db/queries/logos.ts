import type { Insertable, Selectable } from "kysely";
import type { Db, Tables } from "../tables.ts";

type LogoRow = Selectable<Tables["logo"]>;

/** Inserts a logo. Keeps a logo with the same id, which has the same bytes. */
export async function insertLogo(db: Db, row: Insertable<Tables["logo"]>): Promise<void> {
  await db
    .insertInto("logo")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Returns the bytes of a logo and their type. */
export async function findLogoBytes(db: Db, id: string): Promise<Pick<LogoRow, "content_type" | "bytes"> | undefined> {
  return db.selectFrom("logo").select(["content_type", "bytes"]).where("id", "=", id).executeTakeFirst();
}
