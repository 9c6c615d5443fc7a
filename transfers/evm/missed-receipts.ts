import { ChainError } from "../../chains/errors.ts";
import { readBlock } from "../../chains/evm/blocks.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { readNaturalKeys } from "../../chains/evm/transaction-movements.ts";
import { readTransferLogs } from "../../chains/evm/transfer-logs.ts";
import type { EvmMovement } from "../../chains/token-movement.ts";
import { advanceCursor, type Cursor } from "../../db/queries/chain-cursors.ts";
import type { EvmTransactionRow } from "../../db/queries/transactions.ts";
import { type BookUnsolicited, type IncludedTransaction, recordBlocks } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { WATCH_LEASE_MS } from "../watch-lease.ts";
import { setBlockTimes } from "./read-blocks.ts";

/**
 * Throws ChainError `rpc_behind` when the logs that were read name a transaction of ours whose receipt the endpoint did not
 * return: the reading is not complete.
 */
export function requireReceipts(
  sent: readonly EvmTransactionRow[],
  landed: readonly IncludedTransaction[],
  seen: readonly EvmMovement[],
): void {
  const open = new Set<string>(sent.map(({ hash }) => hash));
  for (const { row } of landed) open.delete(row.hash);
  const missing = seen.find(({ txHash }) => open.has(txHash));
  if (missing) throw new ChainError("rpc_behind", { detail: `receipt of ${missing.txHash}` });
}

/**
 * Records transactions of ours in blocks that the watcher has already read. The endpoint returned no receipt of them at
 * that time, and a transaction without logs leaves no other trace in a range. Without this, the nonce would stay pending
 * and keep every later nonce of its lane from being recovered. Receipts of blocks that are no longer on the chain, or that
 * the watcher has not read yet, are left to it.
 */
export async function recordMissedReceipts(
  deps: TransferDeps,
  chain: EvmChain,
  {
    cursor,
    found,
    unsolicited,
  }: { cursor: Cursor; found: readonly IncludedTransaction[]; unsolicited: BookUnsolicited },
): Promise<void> {
  const landed: IncludedTransaction[] = [];
  for (const one of found) {
    if (one.receipt.blockNumber > cursor.number) continue;
    const block = await readFromReadable(chain, (rpc) => readBlock(rpc, one.receipt.blockNumber));
    if (block.hash === one.receipt.blockHash) landed.push(one);
  }
  if (landed.length === 0) return;
  const tokens = new Set<string>([...chain.tokens.values()].map(({ token }) => token));
  const receipts = landed.map(({ receipt }) => receipt);
  const made = receipts.flatMap(({ logs }) => readTransferLogs(logs, chain)).filter(({ token }) => tokens.has(token));
  const seen = await readFromReadable(chain, async (rpc) => {
    const keyed = await readNaturalKeys({ ...chain, rpc }, made, receipts);
    await setBlockTimes(deps, { ...chain, rpc }, keyed);
    return keyed;
  });
  const afterCommit = await deps.db.transaction().execute(async (db) => {
    // A watcher that was overtaken by another process must write nothing.
    if (!(await advanceCursor(db, cursor, { ...cursor, leaseMs: WATCH_LEASE_MS }))) return undefined;
    return recordBlocks(db, deps, chain, { seen, landed, unsolicited, isLate: true });
  });
  if (!afterCommit)
    throw new ChainError("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
  afterCommit();
  deps.log.warn(
    { chain: chain.chain, transactions: landed.map(({ row }) => row.hash) },
    "endpoint had left out receipts of our transactions; they are recorded late",
  );
}
