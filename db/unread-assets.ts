import { sql } from "kysely";
import type { Cursor } from "./cursors.ts";
import type { Db } from "./tables.ts";

/** An asset of which only final blocks up to `number` have been read, and which has to be read up to `until`. */
export type UnreadAsset = { asset: string; number: number; until: number };

/**
 * Notes that the holder of the watch does not read some assets: nothing after the final height is known of those that were
 * read until now. For one that was being read again, its end has to be found anew.
 */
export async function noteAssetsLeft(
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
    insert into unread_asset (chain, asset, number, since)
    select held.chain, a.asset, held.final_number, ${at} from held, unnest(${assets}::text[]) as a (asset)
    on conflict (chain, asset) do update set until = null`.execute(db);
}

/**
 * Notes that the holder of the watch reads some assets from now on. What it has to read of them again begins where they
 * were left, or at the oldest remembered block for an asset that no watcher has read: an API process may have offered it
 * before.
 */
export async function noteAssetsBack(
  db: Db,
  cursor: Cursor,
  { assets, at }: { assets: readonly string[]; at: Date },
): Promise<void> {
  await sql`
    insert into unread_asset (chain, asset, number, until, since)
    select c.chain, a.asset, least(c.final_number, coalesce((
        select min(b.number) - 1 from chain_block b where b.chain = c.chain), c.final_number)), c.number, ${at}
    from chain_cursor c, unnest(${assets}::text[]) as a (asset)
    where c.chain = ${cursor.chain} and c.fence = ${cursor.fence}
    on conflict (chain, asset) do update set until = coalesce(unread_asset.until, excluded.until)`.execute(db);
}

/** The assets of a chain that are being read again. */
export async function listUnreadAssets(db: Db, chain: string): Promise<UnreadAsset[]> {
  return db
    .selectFrom("unread_asset")
    .select(["asset", "number", "until"])
    .where("chain", "=", chain)
    .where("until", "is not", null)
    .$narrowType<{ until: number }>()
    .execute();
}

/** Notes up to which height an asset has been read again. */
export async function noteAssetRead(
  db: Db,
  { chain, asset, number }: { chain: string; asset: string; number: number },
): Promise<void> {
  await db
    .updateTable("unread_asset")
    .set({ number })
    .where("chain", "=", chain)
    .where("asset", "=", asset)
    .where("number", "<", number)
    .execute();
}

/**
 * Everything of some assets has been read. On Solana the time up to which the chain has been read is computed anew, for
 * their histories may be behind it.
 */
export async function endUnreadAssets(
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
    delete from unread_asset u using held where u.chain = held.chain and u.asset = any(${assets}::text[])`.execute(db);
}
