import { type Insertable, type Selectable, sql } from "kysely";
import { batchStatements } from "../batch-calls.ts";
import type { Db, Tables } from "../tables.ts";

export type CollectionPolicyRow = Selectable<Tables["collection_policy"]>;

/** Inserts a policy. */
export async function insertCollectionPolicy(db: Db, row: Insertable<Tables["collection_policy"]>): Promise<void> {
  await db.insertInto("collection_policy").values(row).execute();
}

/** Returns a merchant's policies in the order of creation. Concurrent calls share a statement. */
export const listCollectionPolicies: (db: Db, merchantId: string) => Promise<CollectionPolicyRow[]> = batchStatements(
  async (db, merchantIds: readonly string[]) => {
    const rows = await db
      .selectFrom("collection_policy")
      .selectAll()
      .where(sql<boolean>`merchant_id = any(${[...new Set(merchantIds)]})`)
      .orderBy("created_at")
      .execute();
    const byMerchant = Map.groupBy(rows, (row) => row.merchant_id);
    return merchantIds.map((id) => byMerchant.get(id) ?? []);
  },
);

/** Deletes a policy and returns it. Undefined when there is none with that id. */
export async function deleteCollectionPolicy(db: Db, id: string): Promise<CollectionPolicyRow | undefined> {
  return db.deleteFrom("collection_policy").where("id", "=", id).returningAll().executeTakeFirst();
}
