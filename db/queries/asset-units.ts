import { sql } from "kysely";
import type { Db } from "../tables.ts";

export type AssetUnit = { asset: string; symbol: string; decimals: number };

/** Inserts the units of assets, and replaces those that differ. */
export async function writeAssetUnits(db: Db, units: readonly AssetUnit[]): Promise<void> {
  if (units.length === 0) return;
  await db
    .insertInto("asset_unit")
    .values([...units])
    .onConflict((conflict) =>
      conflict
        .column("asset")
        .doUpdateSet(({ ref }) => ({ symbol: ref("excluded.symbol"), decimals: ref("excluded.decimals") }))
        .where(
          sql<boolean>`(asset_unit.symbol, asset_unit.decimals) is distinct from (excluded.symbol, excluded.decimals)`,
        ),
    )
    .execute();
}

/** Returns the units of all assets that are or were in the networks file. */
export async function listAssetUnits(db: Db): Promise<AssetUnit[]> {
  return db.selectFrom("asset_unit").selectAll().execute();
}
