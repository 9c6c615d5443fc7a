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

/** Parts of a range that are read in one turn at most, so that a turn ends however long an asset was away. */
const MOST_PARTS = 20;

/**
 * At the beginning of a turn: compares the assets that the chain's cursor has read with those of this process. An asset
 * may leave the networks file and come back, or one process may have it before another one has; what is paid with it
 * meanwhile must not be lost. An asset that left is noted with the height up to which it was read; one that is new or
 * back is read from there, see `readUnreadAssets`. A Solana account's history has its own cursor and goes on there. True
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
    deps.log.warn(
      { chain: chain.chain, assets: left },
      "assets are not in the networks file any more: they are not read",
    );
  }
  if (added.length === 0) return false;
  if (chain.family === "evm") await noteAssetsBack(deps.db, cursor, { assets: added, at });
  else await endUnreadAssets(deps.db, cursor, { assets: added, isBehind: true });
  return chain.family === "evm";
}

/** Reads final blocks again, on and on, for the assets that were not read in them; those that are complete are noted. */
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

/** True when nothing of the asset is left to be read. */
async function readUnread(
  deps: TransferDeps,
  chain: EvmChain,
  { asset, number, until }: UnreadAsset,
  { cursor, bound }: { cursor: Cursor; bound: BoundBook },
): Promise<boolean> {
  const token = chain.tokens.get(asset)?.token;
  if (token === undefined) return false;
  const sources = { ...listSources(chain), tokens: [token] };
  // What is not final yet is read a second time anyway before it is confirmed, and with this asset.
  const range = { from: number + 1, to: Math.min(until, cursor.finalNumber) };
  let [reached, parts] = [number, 0];
  for await (const { part, found } of readInParts(range, (one) => readTransfersBetween(chain.rpc, one, sources))) {
    const ofAsset = found.filter((log) => log.token === token);
    await recordMissed(deps, chain, ofAsset, bound);
    await noteAssetRead(deps.db, { chain: chain.chain, asset, number: part.to });
    [reached, parts] = [part.to, parts + 1];
    if (parts === MOST_PARTS) break;
  }
  return reached >= until;
}
