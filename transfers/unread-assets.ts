import { readTransfersBetween } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { readInParts } from "../chains/evm/ranges.ts";
import type { Chain } from "../chains/open.ts";
import type { Cursor } from "../db/cursors.ts";
import {
  endUnreadAssets,
  listUnreadAssets,
  noteAssetRead,
  noteAssetsBack,
  noteAssetsLeft,
  type UnreadAsset,
} from "../db/unread-assets.ts";
import { recordMissed } from "./confirm.ts";
import type { TransferDeps } from "./deps.ts";
import { listSources } from "./reading.ts";
import type { BoundBook } from "./record.ts";

/** Parts of a range that one pass reads at most, so that a pass ends regardless of how long an asset was missing. */
const MAX_PARTS = 20;

/**
 * Compares the assets that the chain's cursor has read with those of this process, at the start of a pass. An asset can be
 * removed from the networks file and added again, and during a deployment only some processes have it. Payments with it in
 * the meantime must not be lost. Stores the height up to which a removed asset was read; an added asset is read from there,
 * see `readUnreadAssets`. On Solana the history of each token account has its own cursor and continues there. Returns true
 * when `readUnreadAssets` has something to read.
 */
export async function compareAssets(
  deps: TransferDeps,
  chain: Chain,
  cursor: Cursor & { assets: readonly string[]; rereading: readonly string[] },
): Promise<boolean> {
  const at = deps.now();
  const left = [...cursor.assets, ...cursor.rereading].filter((asset) => !chain.tokens.has(asset));
  const added = [...chain.tokens.keys()].filter((asset) => !cursor.assets.includes(asset));
  if (left.length > 0) {
    await noteAssetsLeft(deps.db, cursor, { assets: left, at });
    deps.log.warn({ chain: chain.chain, assets: left }, "assets were removed from the networks file and are not read");
  }
  if (added.length === 0) return false;
  if (chain.family === "evm") await noteAssetsBack(deps.db, cursor, { assets: added, at });
  else await endUnreadAssets(deps.db, cursor, { assets: added, isBehind: true });
  return chain.family === "evm";
}

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
