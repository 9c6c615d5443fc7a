import { type AssetUnit, listAssetUnits } from "../db/queries/asset-units.ts";
import type { Db } from "../db/tables.ts";

/** Interval between two reads for an asset that was not found, milliseconds. */
const RETRY_MS = 10_000;

/** The units of assets that this process's networks file may lack, as workers have reported them. */
export type AssetUnits = {
  /** Returns the unit of an asset; undefined when no worker has reported it. */
  find(asset: string): Promise<AssetUnit | undefined>;
  /** Returns the units of all assets that were known when they were read last. */
  list(): Promise<AssetUnit[]>;
};

/**
 * Returns the units of assets. They are read when the first one is needed, and again when one is not among them. So a payment
 * costs no statement more because its asset has left the networks file.
 */
export function createAssetUnits(db: Db, monotonic = () => performance.now()): AssetUnits {
  let units: ReadonlyMap<string, AssetUnit> | undefined;
  let reading: Promise<ReadonlyMap<string, AssetUnit>> | undefined;
  const searchedAt = new Map<string, number>();
  const read = () => {
    reading ??= listAssetUnits(db)
      .then((rows) => {
        units = new Map(rows.map((row) => [row.asset, row]));
        return units;
      })
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  return {
    async find(asset) {
      const known = units?.get(asset);
      if (known || monotonic() - (searchedAt.get(asset) ?? Number.NEGATIVE_INFINITY) < RETRY_MS) return known;
      const found = (await read()).get(asset);
      if (!found) searchedAt.set(asset, monotonic());
      return found;
    },
    list: async () => [...(units ?? (await read())).values()],
  };
}
