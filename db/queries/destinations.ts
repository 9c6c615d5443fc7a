import { type Insertable, type Selectable, sql, type Updateable } from "kysely";
import type { Db, Tables } from "../tables.ts";

type DestinationRow = Selectable<Tables["settlement_destination"]>;
type Named = Pick<DestinationRow, "id" | "asset" | "destination">;

/** Inserts destinations of a merchant. */
export async function insertDestinations(
  db: Db,
  rows: readonly Pick<
    Insertable<Tables["settlement_destination"]>,
    "id" | "merchant_id" | "asset" | "destination" | "created_at" | "updated_at"
  >[],
): Promise<void> {
  await db.insertInto("settlement_destination").values(rows).execute();
}

/** Returns a merchant's destinations in the order of registration. */
export async function listDestinationRows(db: Db, merchantId: string): Promise<Named[]> {
  return db
    .selectFrom("settlement_destination")
    .select(["id", "asset", "destination"])
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
    .select(["id", "asset", "destination"])
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

/** Updates a destination. */
export async function updateDestination(
  db: Db,
  {
    id,
    ...changes
  }: { id: string; updated_at: Date } & Omit<
    Updateable<Tables["settlement_destination"]>,
    "merchant_id" | "asset" | "created_at"
  >,
): Promise<void> {
  await db.updateTable("settlement_destination").set(changes).where("id", "=", id).execute();
}

/** Deletes one of a merchant's destinations and returns it. Undefined when the merchant has none with that id. */
export async function removeDestination(
  db: Db,
  { merchantId, id }: { merchantId: string; id: string },
): Promise<Named | undefined> {
  return db
    .deleteFrom("settlement_destination")
    .where("id", "=", id)
    .where("merchant_id", "=", merchantId)
    .returning(["id", "asset", "destination"])
    .executeTakeFirst();
}

type DestinationChange = Pick<Selectable<Tables["destination_change"]>, "asset" | "before" | "after" | "at">;

/** Returns the changes of a merchant's destinations, oldest first, including deleted destinations. */
export async function listDestinationChanges(db: Db, merchantId: string): Promise<DestinationChange[]> {
  return db
    .selectFrom("destination_change")
    .select(["asset", "before", "after", "at"])
    .where("merchant_id", "=", merchantId)
    .orderBy("id")
    .execute();
}

/** Returns when a merchant last replaced or deleted a destination (CAIP-10, compared in lower case); null if never. */
export async function findLastReplaced(
  db: Db,
  args: { merchantId: string; asset: string; destination: string },
): Promise<Date | null> {
  const row = await db
    .selectFrom("destination_change")
    .select(({ fn }) => fn.max("at").as("at"))
    .where("merchant_id", "=", args.merchantId)
    .where("asset", "=", args.asset)
    .where(sql<boolean>`lower(before) = ${args.destination}`)
    .executeTakeFirst();
  return row?.at ?? null;
}
