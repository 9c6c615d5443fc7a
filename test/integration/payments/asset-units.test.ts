import { expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { writeAssetUnits } from "../../../db/queries/asset-units.ts";
import { createAssetUnits } from "../../../payments/asset-units.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { createDatabase } from "../../support/test-database.ts";

const statements = { count: 0 };
const db = openDb(await createDatabase(), { max: 5, onStatement: () => void statements.count++ });
addCleanup(() => db.destroy());
const unit = (asset: string) => ({ asset, symbol: asset.toUpperCase(), decimals: 6 });

/** Returns how many statements some work takes. */
async function count(work: () => Promise<unknown>): Promise<number> {
  const before = statements.count;
  await work();
  return statements.count - before;
}

test("the units of assets are read once, and again for an asset that is not among them, but not more than every ten seconds", async () => {
  const clock = { ms: 0 };
  const units = createAssetUnits(db, () => clock.ms);
  await writeAssetUnits(db, [unit("a"), unit("b")]);
  expect(await count(() => Promise.all([units.find("a"), units.find("b"), units.list()]))).toBe(1);
  expect(await count(() => Promise.all([units.find("a"), units.find("b"), units.list()]))).toBe(0);
  expect(await units.find("b")).toEqual(unit("b"));
  expect(await units.list()).toEqual([unit("a"), unit("b")]);

  expect(await count(() => units.find("c"))).toBe(1);
  await writeAssetUnits(db, [unit("c")]);
  clock.ms = 9_999;
  expect(await count(async () => expect(await units.find("c")).toBeUndefined())).toBe(0);
  clock.ms = 10_000;
  expect(await count(async () => expect(await units.find("c")).toEqual(unit("c")))).toBe(1);
  expect(await count(async () => expect(await units.find("c")).toEqual(unit("c")))).toBe(0);
});
