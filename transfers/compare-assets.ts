import type { Chain } from "../chains/chain.ts";
import { beginBackfills, finishBackfills, recordUnwatchedAssets } from "../db/queries/asset-backfills.ts";
import type { Cursor } from "../db/queries/chain-cursors.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Compares the assets that the chain's cursor has read with those of this process, at the start of a pass. An asset can be
 * removed from the networks file and added again, and during a deployment only some processes have it. Payments with it in
 * the meantime must not be lost. Stores the height up to which a removed asset was read; an added asset is read from there,
 * see `backfillAssets`. Where the history of each token account has its own cursor (Solana), it continues there. Returns
 * true when `backfillAssets` has something to read.
 * @param args.readsBlocks true where one cursor reads all assets from blocks
 */
export async function compareWatchedAssets(
  deps: TransferDeps,
  chain: Chain,
  cursor: Cursor & { assets: readonly string[]; rereading: readonly string[] },
  args: { readsBlocks: boolean },
): Promise<boolean> {
  const at = deps.now();
  const left = [...cursor.assets, ...cursor.rereading].filter((asset) => !chain.tokens.has(asset));
  const added = [...chain.tokens.keys()].filter((asset) => !cursor.assets.includes(asset));
  if (left.length > 0) {
    await recordUnwatchedAssets(deps.db, cursor, { assets: left, at });
    deps.log.warn({ chain: chain.chain, assets: left }, "assets were removed from the networks file and are not read");
  }
  if (added.length === 0) return false;
  if (args.readsBlocks) await beginBackfills(deps.db, cursor, { assets: added, at });
  else await finishBackfills(deps.db, cursor, { assets: added, isBehind: true });
  return args.readsBlocks;
}
