import type { Insertable, Selectable } from "kysely";
import type { Db, Tables } from "../tables.ts";

export type CollectionPolicyRow = Selectable<Tables["collection_policy"]>;

/** Inserts a policy. */
export async function insertCollectionPolicy(db: Db, row: Insertable<Tables["collection_policy"]>): Promise<void> {
  await db.insertInto("collection_policy").values(row).execute();
}

/** Returns a merchant's policies in the order of creation. */
export async function listCollectionPolicies(db: Db, merchantId: string): Promise<CollectionPolicyRow[]> {
  return db
    .selectFrom("collection_policy")
    .selectAll()
    .where("merchant_id", "=", merchantId)
    .orderBy("created_at")
    .execute();
}

/** Deletes a policy and returns it. Undefined when there is none with that id. */
export async function deleteCollectionPolicy(db: Db, id: string): Promise<CollectionPolicyRow | undefined> {
  return db.deleteFrom("collection_policy").where("id", "=", id).returningAll().executeTakeFirst();
}
