import type { Selectable, Updateable } from "kysely";
import type { Db, Tables } from "../tables.ts";

type DestinationRow = Selectable<Tables["settlement_destination"]>;
type Named = Pick<DestinationRow, "id" | "asset" | "given_asset" | "destination">;

/** Returns a merchant's destinations in the order of registration. */
export async function listDestinationRows(db: Db, merchantId: string): Promise<Named[]> {
  return db
    .selectFrom("settlement_destination")
    .select(["id", "asset", "given_asset", "destination"])
    .where("merchant_id", "=", merchantId)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

/** Returns one of a merchant's destinations. */
export async function findDestination(
  db: Db,
  { merchantId, id }: { merchantId: string; id: string },
): Promise<Named | undefined> {
  return db
    .selectFrom("settlement_destination")
    .select(["id", "asset", "given_asset", "destination"])
    .where("id", "=", id)
    .where("merchant_id", "=", merchantId)
    .executeTakeFirst();
}

/** Returns how a destination is paid. */
export async function findPayoutPolicy(
  db: Db,
  id: string,
): Promise<
  Pick<DestinationRow, "accumulation_ms" | "accumulation_amount" | "minimum" | "direct" | "accepts_other_assets">
> {
  return db
    .selectFrom("settlement_destination")
    .select(["accumulation_ms", "accumulation_amount", "minimum", "direct", "accepts_other_assets"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
}

/** Returns the assets of a merchant's destinations, and whether each accepts payments in other assets. */
export async function listAcceptedAssets(
  db: Db,
  merchantId: string,
): Promise<Pick<DestinationRow, "id" | "asset" | "accepts_other_assets">[]> {
  return db
    .selectFrom("settlement_destination")
    .select(["id", "asset", "accepts_other_assets"])
    .where("merchant_id", "=", merchantId)
    .execute();
}

/** Updates a destination. Only a change that applies, by a trigger, updates its account. */
export async function updateDestination(
  db: Db,
  {
    id,
    ...changes
  }: { id: string; updated_at: Date } & Omit<
    Updateable<Tables["settlement_destination"]>,
    "merchant_id" | "asset" | "given_asset" | "destination" | "created_at"
  >,
): Promise<void> {
  await db.updateTable("settlement_destination").set(changes).where("id", "=", id).execute();
}
