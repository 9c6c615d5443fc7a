import { ChainError } from "../../chains/errors.ts";
import { type BlockRange, DEFAULT_BLOCKS_PER_PART, readRangeInParts } from "../../chains/evm/block-ranges.ts";
import { readBlock, readTransfersBetween } from "../../chains/evm/blocks.ts";
import { readReceipt } from "../../chains/evm/evm-broadcast.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { EvmMovement } from "../../chains/token-movement.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import type { FailedBookingRow } from "../../db/queries/failed-bookings.ts";
import { type EvmTransactionRow, listByHashes, listInFlight } from "../../db/queries/transactions.ts";
import type { IncludedTransaction } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { requireReceipts } from "./missed-receipts.ts";
import { listSources, type Reading, requireLogs, setBlockTimes, setPushTags } from "./read-blocks.ts";

/** The newest blocks are always read one by one, regardless of finality, and so are gaps no longer than this. */
const SINGLE_BLOCKS = 16;

/**
 * Reads the next range of a long gap, for example after downtime, with a few calls for any number of blocks. The range is
 * final, so it continues the cursor when the chain contains the blocks at both its ends. It is read once more before its
 * transfers are confirmed. Returns undefined when the gap is short, when the cursor's block was removed by a reorg, or when
 * the endpoint rejects ranges. The caller then reads the blocks one by one.
 */
export async function readGap(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  { from, head }: { from: Cursor; head: number },
): Promise<Reading | undefined> {
  const longest = Math.min(from.number + DEFAULT_BLOCKS_PER_PART, head - SINGLE_BLOCKS);
  if (longest - from.number <= SINGLE_BLOCKS) return undefined;
  const to = Math.min(longest, await readFinal(chain, head));
  if (to - from.number <= SINGLE_BLOCKS) return undefined;
  const [first, last] = await Promise.all([readBlock(chain.rpc, from.number), readBlock(chain.rpc, to)]);
  if (first.hash !== from.blockId) return undefined;
  const range = { from: from.number + 1, to };
  const seen = await readMovements(chain, range).catch((error: unknown) => {
    if (error instanceof ChainError && error.code === "rpc_answer") return undefined;
    throw error;
  });
  if (!seen) return undefined;
  const sent = await listInFlight(deps.db, chain.chain);
  const landed = await readLandedBetween(chain, sent, range);
  requireReceipts(sent, landed, seen);
  requireLogs(chain, landed, seen);
  await setPushTags(chain, seen);
  await setBlockTimes(deps, chain, seen);
  return { blocks: [last], seen, landed };
}

async function readMovements(chain: EvmChain, range: BlockRange): Promise<EvmMovement[]> {
  const sources = listSources(chain);
  const seen: EvmMovement[] = [];
  const parts = readRangeInParts(range, (part) => readTransfersBetween(chain.rpc, part, sources));
  for await (const { found } of parts) seen.push(...found);
  return seen;
}

/** Returns the highest block that an endpoint reports as final. */
async function readFinal(chain: EvmChain, head: number): Promise<number> {
  const { finality } = chain.network;
  return typeof finality === "object" ? head - finality.blocks + 1 : (await readBlock(chain.rpc, finality)).number;
}

/** Reads the receipts of the transactions in flight. A range read has no list of the transactions in its blocks. */
async function readLandedBetween(
  chain: EvmChain,
  sent: readonly EvmTransactionRow[],
  range: BlockRange,
): Promise<IncludedTransaction[]> {
  const found = await readReceipts(chain, sent);
  return found.filter(({ receipt }) => receipt.blockNumber >= range.from && receipt.blockNumber <= range.to);
}

/** Returns those of our transactions in failed bookings that a block up to the cursor includes. */
export async function readIncludedOf(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  { number }: Cursor,
  due: readonly FailedBookingRow[],
): Promise<IncludedTransaction[]> {
  const hashes = due.filter(({ kind }) => kind === "transaction").map(({ subject }) => subject);
  const found = await readReceipts(chain, await listByHashes(deps.db, { chain: chain.chain, hashes }));
  return found.filter(({ receipt }) => receipt.blockNumber <= number);
}

/** Returns the transactions that are in blocks, with their receipts. */
export async function readReceipts(
  chain: EvmChain,
  rows: readonly EvmTransactionRow[],
): Promise<IncludedTransaction[]> {
  const found = await Promise.all(rows.map(async (row) => ({ row, receipt: await readReceipt(chain.rpc, row.hash) })));
  return found.flatMap(({ row, receipt }) => (receipt ? [{ row, receipt }] : []));
}
