import { readTransfersBetween } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { readInParts } from "../chains/evm/ranges.ts";
import type { Cursor } from "../db/cursors.ts";
import { endUnreadAssets, listUnreadAssets, noteAssetRead, type UnreadAsset } from "../db/unread-assets.ts";
import { recordMissed } from "./confirm-final.ts";
import type { TransferDeps } from "./deps.ts";
import { listSources } from "./reading.ts";
import type { BoundBook } from "./record.ts";

/** Parts of a range that one pass reads at most, so that a pass ends regardless of how long an asset was missing. */
const MAX_PARTS = 20;

/** Reads final blocks again for the assets that were not read in them. Each pass continues; complete assets are marked. */
export async function readUnreadAssets(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, bound }: { cursor: Cursor; bound: BoundBook },
): Promise<void> {
  const complete: string[] = [];
  for (const unread of await listUnreadAssets(deps.db, chain.chain))
    if (await readUnread(deps, chain, unread, { cursor, bound })) complete.push(unread.asset);
  if (complete.length > 0) await endUnreadAssets(deps.db, cursor, { assets: complete, isBehind: false });
}

/** Returns true when the asset is completely read. */
async function readUnread(
  deps: TransferDeps,
  chain: EvmChain,
  { asset, number, until }: UnreadAsset,
  { cursor, bound }: { cursor: Cursor; bound: BoundBook },
): Promise<boolean> {
  const token = chain.tokens.get(asset)?.token;
  if (token === undefined) return false;
  const sources = { ...listSources(chain), tokens: [token] };
  // Blocks that are not final yet are read a second time before they are confirmed, with this asset included.
  const range = { from: number + 1, to: Math.min(until, cursor.finalNumber) };
  let [reached, parts] = [number, 0];
  for await (const { part, found } of readInParts(range, (one) => readTransfersBetween(chain.rpc, one, sources))) {
    const ofAsset = found.filter((log) => log.token === token);
    await recordMissed(deps, chain, { logs: ofAsset, bound, reason: "the asset was not in the networks file" });
    await noteAssetRead(deps.db, { chain: chain.chain, asset, number: part.to });
    [reached, parts] = [part.to, parts + 1];
    if (parts === MAX_PARTS) break;
  }
  return reached >= until;
}
