import { sql } from "kysely";
import type { Db } from "../tables.ts";
import type { Cursor } from "./chain-cursors.ts";

/** A backfill: the asset's movements are read up to `number` and must be read up to `until`. */
export type AssetBackfill = { asset: string; number: number; until: number };

/**
 * Records that a chain's watcher no longer reads some assets. Their movements after the final height are unknown from then
 * on. A backfill that was in progress loses its end, which is set when the asset is configured again.
 */
export async function recordUnwatchedAssets(
  db: Db,
  cursor: Cursor,
  { assets, at }: { assets: readonly string[]; at: Date },
): Promise<void> {
  await sql`
    with held as (
      update chain_cursor set assets = array(select unnest(assets) except select unnest(${assets}::text[]))
      where chain = ${cursor.chain} and fence = ${cursor.fence}
      returning chain, final_number
    )
    insert into asset_backfill (chain, asset, number, since)
    select held.chain, a.asset, held.final_number, ${at} from held, unnest(${assets}::text[]) as a (asset)
    on conflict (chain, asset) do update set until = null`.execute(db);
}

/**
 * Begins the backfill of assets that a chain's watcher reads from now on. The backfill starts where the asset was left. For
 * an asset that no watcher has ever read it starts at the oldest stored block, because an API process may have offered the
 * asset before.
 */
export async function beginBackfills(
  db: Db,
  cursor: Cursor,
  { assets, at }: { assets: readonly string[]; at: Date },
): Promise<void> {
  await sql`
    insert into asset_backfill (chain, asset, number, until, since)
    select c.chain, a.asset, least(c.final_number, coalesce((
        select min(b.number) - 1 from chain_block b where b.chain = c.chain), c.final_number)), c.number, ${at}
    from chain_cursor c, unnest(${assets}::text[]) as a (asset)
    where c.chain = ${cursor.chain} and c.fence = ${cursor.fence}
    on conflict (chain, asset) do update set until = coalesce(asset_backfill.until, excluded.until)`.execute(db);
}

/** Returns the assets of a chain whose backfill is in progress. */
export async function listBackfills(db: Db, chain: string): Promise<AssetBackfill[]> {
  return db
    .selectFrom("asset_backfill")
    .select(["asset", "number", "until"])
    .where("chain", "=", chain)
    .where("until", "is not", null)
    .$narrowType<{ until: number }>()
    .execute();
}

/** Stores the height up to which an asset's backfill has come. */
export async function advanceBackfill(
  db: Db,
  { chain, asset, number }: { chain: string; asset: string; number: number },
): Promise<void> {
  await db
    .updateTable("asset_backfill")
    .set({ number })
    .where("chain", "=", chain)
    .where("asset", "=", asset)
    .where("number", "<", number)
    .execute();
}

/**
 * Finishes the backfills of some assets.
 * @param args.isBehind resets the chain's time, which is then computed again: on Solana, the histories of the assets may be
 * behind it
 */
export async function finishBackfills(
  db: Db,
  cursor: Cursor,
  { assets, isBehind }: { assets: readonly string[]; isBehind: boolean },
): Promise<void> {
  await sql`
    with held as (
      update chain_cursor set assets = array(select unnest(assets) union select unnest(${assets}::text[])),
        chain_time = case when ${isBehind} then null else chain_time end
      where chain = ${cursor.chain} and fence = ${cursor.fence}
      returning chain
    )
    delete from asset_backfill u using held where u.chain = held.chain and u.asset = any(${assets}::text[])`.execute(
    db,
  );
}
