import { findHeight } from "../../chains/find-height.ts";
import { readFinal, readHead, readSlotTime } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { findNewestSignature } from "../../chains/solana/transaction-history.ts";
import { findLostSince } from "../../db/epoch.ts";
import { ensureAccountCursor, type HistoryStart, listCursorAccounts } from "../../db/queries/account-cursors.ts";
import { ensureCursor } from "../../db/queries/chain-cursors.ts";
import { ensureLane } from "../../db/queries/lanes.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { ensureAccounts } from "./ensure-accounts.ts";
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
  const assets = [...chain.tokens.keys()];
  await ensureCursor(deps.db, { chain: chain.chain, number, blockId: String(number), dueAt: deps.now(), assets });
}

/**
 * Returns where the reading of an account's history starts that has no cursor: at its end, and before the lost commits where a
 * restored database may have lost the cursor.
 */
async function findHistoryStart(deps: TransferDeps, chain: SolanaChain, account: string): Promise<HistoryStart> {
  const since = await findLostSince(deps.db);
  if (!since) return { newest: await findNewestSignature(chain, account) };
  const { slot: newest } = await readFinal(chain);
  const upTo = await findHeight((slot) => readSlotTime(chain, slot), { newest, at: since });
  deps.log.warn({ chain: chain.chain, account, slot: upTo, since }, "a restored database has no cursor of the account");
  return { newest: await findNewestSignature(chain, account, upTo), upTo };
}
