import { findHeight } from "../../chains/find-height.ts";
import { readFinal, readHead, readHeadFromEach, readSlotTime } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { findNewestSignature } from "../../chains/solana/transaction-history.ts";
import { findLostSince } from "../../db/epoch.ts";
import { ensureAccountCursor, type HistoryStart, listCursorAccounts } from "../../db/queries/account-cursors.ts";
import { ensureCursor } from "../../db/queries/chain-cursors.ts";
import { ensureLane } from "../../db/queries/lanes.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { ensureAccounts } from "./ensure-accounts.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";
import { PAYMENT_UNITS } from "./spl-transfer.ts";

/**
 * Creates the rows of a cluster's lanes and cursors, and ensures that the treasury's token accounts and the durable nonce
 * accounts exist. Leaves existing rows and accounts as they are. Called at every start.
 */
export async function startSolana(deps: TransferDeps, chain: SolanaChain): Promise<void> {
  for (const address of chain.lanes)
    await ensureLane(deps.db, { id: `${chain.chain}:${address}`, chain: chain.chain, address, nextNonce: 0 });
  await ensureAccounts(deps, chain);
  const read = new Set(await listCursorAccounts(deps.db, chain.chain));
  for (const { treasuryAccount: account } of chain.tokens.values())
    if (!read.has(account))
      await ensureAccountCursor(deps.db, {
        chain: chain.chain,
        account,
        ...(await findHistoryStart(deps, chain, account)),
      });
  const { maxPriorityFee } = chain.network;
  deps.metrics.laneFeeCeiling.set({ chain: chain.chain }, Number(maxPriorityFee) / PAYMENT_UNITS);
  const number = await readHead(chain);
  await ensureCursor(deps.db, {
    chain: chain.chain,
    number,
    finalNumber: Math.max(0, number - BOOKED_BEFORE_HEAD),
    blockId: String(number),
    dueAt: deps.now(),
    assets: [...chain.tokens.keys()],
  });
}

/**
 * A new cursor says so many slots before the head that everything is booked. It must be below every slot that is final now: the accounts
 * that a start creates, in this process or another one, are booked only by the watch, and a reconciliation before that would take what
 * they cost for money that the lane never had.
 */
const BOOKED_BEFORE_HEAD = 512;

/** Slots take at least this part of the network's `slotMs`, on average of some minutes. */
const SHORTEST_SLOT = 0.75;

/**
 * Returns where the reading of an account's history starts that has no cursor: at its end, and before the lost commits where a
 * restored database may have lost the cursor.
 */
async function findHistoryStart(deps: TransferDeps, chain: SolanaChain, account: string): Promise<HistoryStart> {
  const since = await findLostSince(deps.db);
  if (!since) return startAt(chain, await findNewestSignature(chain, account));
  const upTo = await findSlotAt(deps, chain, since);
  deps.log.warn({ chain: chain.chain, account, slot: upTo, since }, "a restored database has no cursor of the account");
  return { ...(await startAt(chain, await findNewestSignature(chain, account, upTo))), upTo };
}

/**
 * Returns the start after a transaction. One endpoint of several has shown it and may have invented it: the lists of others do not end
 * there. Nor does it decide its slot if no other endpoint has reached that: the others' lists begin after it.
 */
async function startAt(
  chain: SolanaChain,
  newest: Awaited<ReturnType<typeof findNewestSignature>>,
): Promise<Pick<HistoryStart, "newest" | "shownBy">> {
  if (!newest || chain.network.rpc.length < REQUIRED_ENDPOINTS) return { newest };
  const { signature, slot, by: shownBy } = newest;
  const heads = await readHeadFromEach(chain, (by) => by !== shownBy);
  return { newest: { signature, slot: heads.length > 0 ? Math.min(slot, Math.max(...heads)) : slot }, shownBy };
}

/** Returns a slot that the cluster had reached at a time, rather a too low one. */
async function findSlotAt(deps: TransferDeps, chain: SolanaChain, at: Date): Promise<number> {
  const { slot: newest } = await readFinal(chain);
  const found = await findHeight((slot) => readSlotTime(chain, slot), { newest, at });
  // The cluster is younger, or no endpoint's history goes back so far: one that does, which an operator may add, need not go back to
  // slot 0. Nodes answer with the time of slot 0 however little they keep.
  const shortestMs = chain.network.slotMs * SHORTEST_SLOT;
  const estimate = newest - Math.ceil((deps.now().getTime() - at.getTime()) / shortestMs);
  return found > 0 ? found : Math.max(0, estimate);
}
