import type { Selectable } from "kysely";
import type { Db, Tables } from "../tables.ts";

export type FeePolicyRow = Selectable<Tables["fee_policy"]>;

/** Inserts or replaces the fee policy of an account, or of one of its merchants. */
export async function upsertFeePolicy(db: Db, row: FeePolicyRow): Promise<void> {
  const { basis_points, fixed_micros, updated_at } = row;
  await db
    .insertInto("fee_policy")
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(["account_id", "merchant_id"]).doUpdateSet({ basis_points, fixed_micros, updated_at }),
    )
    .execute();
}

/** Returns the fee policy of an account, or of one of its merchants. */
export async function findFeePolicy(
  db: Db,
  { accountId, merchantId }: { accountId: string; merchantId: string | null },
): Promise<FeePolicyRow | undefined> {
  return db
    .selectFrom("fee_policy")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("merchant_id", merchantId === null ? "is" : "=", merchantId)
    .executeTakeFirst();
}

/** Deletes the fee policy of an account, or of one of its merchants. Returns false when there was none. */
export async function deleteFeePolicy(
  db: Db,
  { accountId, merchantId }: { accountId: string; merchantId: string | null },
): Promise<boolean> {
  const result = await db
    .deleteFrom("fee_policy")
    .where("account_id", "=", accountId)
    .where("merchant_id", merchantId === null ? "is" : "=", merchantId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Returns every fee policy, an account's own before those of its merchants. */
export async function listFeePolicies(db: Db): Promise<FeePolicyRow[]> {
  return db
    .selectFrom("fee_policy")
    .selectAll()
    .orderBy("account_id")
    .orderBy("merchant_id", (order) => order.asc().nullsFirst())
    .execute();
}
