import { readAccountMovements } from "../../chains/evm/account-logs.ts";
import { type BlockRange, readRangeInParts } from "../../chains/evm/log-ranges.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import {
  type AssetBackfill,
  advanceBackfill,
  finishBackfills,
  listBackfills,
} from "../../db/queries/asset-backfills.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import type { BookUnsolicited } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { recordMissingMovements } from "./confirm-final.ts";
import { watchAccounts } from "./watched-accounts.ts";

/** Parts of a range that one pass reads at most, so that a pass ends regardless of how long an asset was missing. */
const MAX_PARTS = 20;

/** Reads final blocks again for the assets that were not read in them. Each pass continues; complete assets are marked. */
export async function backfillAssets(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, unsolicited }: { cursor: Cursor; unsolicited: BookUnsolicited },
): Promise<void> {
  const complete: string[] = [];
  for (const unread of await listBackfills(deps.db, chain.chain))
    if (await readUnread(deps, chain, unread, { cursor, unsolicited })) complete.push(unread.asset);
  if (complete.length > 0) await finishBackfills(deps.db, cursor, { assets: complete, isBehind: false });
}

/** Returns true when the asset is completely read. */
async function readUnread(
  deps: TransferDeps,
  chain: EvmChain,
  { asset, number, until }: AssetBackfill,
  { cursor, unsolicited }: { cursor: Cursor; unsolicited: BookUnsolicited },
): Promise<boolean> {
  const token = chain.tokens.get(asset)?.token;
  if (token === undefined) return false;
  const accounts = { ...watchAccounts(chain), tokens: [token] };
  // Blocks that are not final yet are read a second time before they are confirmed, with this asset included.
  const range = { from: number + 1, to: Math.min(until, cursor.finalNumber) };
  let [reached, parts] = [number, 0];
  const read = (one: BlockRange) => readFromReadable(chain, (rpc) => readAccountMovements(rpc, one, accounts));
  for await (const { part, found } of readRangeInParts(chain.rpc, range, { longest: chain.network.logRange, read })) {
    const reason = "the asset was not in the networks file";
    const missing = { logs: found, unsolicited, reason };
    await readFromReadable(chain, (rpc) => recordMissingMovements(deps, { ...chain, rpc }, missing));
    await advanceBackfill(deps.db, { chain: chain.chain, asset, number: part.to });
    [reached, parts] = [part.to, parts + 1];
    if (parts === MAX_PARTS) break;
  }
  return reached >= until;
}
