import { ChainError } from "../../chains/errors.ts";
import { readAccountMovements } from "../../chains/evm/account-logs.ts";
import { readBlock } from "../../chains/evm/blocks.ts";
import { readReceipt } from "../../chains/evm/evm-broadcast.ts";
import type { Rpc } from "../../chains/evm/evm-rpc.ts";
import { readRangeInParts } from "../../chains/evm/log-ranges.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import type { FailedBookingRow } from "../../db/queries/failed-bookings.ts";
import { type EvmTransactionRow, listByHashes, listInFlight } from "../../db/queries/transactions.ts";
import type { IncludedTransaction } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { requireReceipts } from "./missed-receipts.ts";
import { completeMovements, type Reading, setBlockTimes } from "./read-blocks.ts";
import { listWatchedAccounts } from "./watched-accounts.ts";

/** The newest blocks are always read one by one, regardless of finality, and so are gaps no longer than this. */
const SINGLE_BLOCKS = 16;

/**
 * What the parts of a gap share within a pass, by endpoint: our transactions in flight, and the receipts of those in blocks. A range
 * read has no list of the transactions in its blocks, and one that is sent later is in no block of the gap.
 */
export type GapReceipts = Map<Rpc, InFlight>;

type InFlight = { sent: readonly EvmTransactionRow[]; included: readonly IncludedTransaction[] };

/**
 * Reads the next part of a long gap, for example after downtime, with a few calls for any number of blocks. The part is
 * final, so it continues the cursor when the chain contains the blocks at both its ends. It is read once more before its
 * transfers are confirmed. Its length is what the endpoint allows, and the caller stores it before it reads the next one.
 * Returns undefined when the gap is short, when the cursor's block was removed by a reorg, or when the endpoint answers no
 * range of two blocks. The caller then reads the blocks one by one.
 */
export async function readGap(
  deps: Pick<TransferDeps, "db" | "now">,
  chain: EvmChain,
  { from, head, receipts }: { from: Cursor; head: number; receipts: GapReceipts },
): Promise<Reading | undefined> {
  if (head - SINGLE_BLOCKS - from.number <= SINGLE_BLOCKS) return undefined;
  const to = Math.min(head - SINGLE_BLOCKS, await readFinal(chain, head));
  if (to - from.number <= SINGLE_BLOCKS) return undefined;
  const first = await readBlock(chain.rpc, from.number);
  if (first.hash !== from.blockId) return undefined;
  const accounts = await listWatchedAccounts(deps, chain);
  const parts = readRangeInParts(
    chain.rpc,
    { from: from.number + 1, to },
    {
      longest: chain.network.logRange,
      read: (part) => readAccountMovements(chain.rpc, part, accounts),
    },
  );
  const next = await parts.next().catch((error: unknown) => {
    if (error instanceof ChainError && error.code === "rpc_answer") return undefined;
    throw error;
  });
  if (!next || next.done) return undefined;
  const { part, found } = next.value;
  const last = await readBlock(chain.rpc, part.to);
  const { sent, included } = receipts.get(chain.rpc) ?? (await readInFlight(deps, chain));
  receipts.set(chain.rpc, { sent, included });
  const landed = included.filter(({ receipt }) => receipt.blockNumber >= part.from && receipt.blockNumber <= part.to);
  requireReceipts(sent, landed, found);
  const seen = await completeMovements(deps, chain, { accounts, landed, found });
  await setBlockTimes(deps, chain, seen);
  return { blocks: [last], seen, landed, isRange: true };
}

/** Returns the highest block that an endpoint reports as final. */
async function readFinal(chain: EvmChain, head: number): Promise<number> {
  const { finality } = chain.network;
  return typeof finality === "object" ? head - finality.blocks + 1 : (await readBlock(chain.rpc, finality)).number;
}

async function readInFlight(deps: Pick<TransferDeps, "db">, chain: EvmChain): Promise<InFlight> {
  const sent = await listInFlight(deps.db, chain.chain);
  return { sent, included: await readReceipts(chain, sent) };
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
  chain: Pick<EvmChain, "rpc">,
  rows: readonly EvmTransactionRow[],
): Promise<IncludedTransaction[]> {
  const found = await Promise.all(rows.map(async (row) => ({ row, receipt: await readReceipt(chain.rpc, row.hash) })));
  return found.flatMap(({ row, receipt }) => (receipt ? [{ row, receipt }] : []));
}
