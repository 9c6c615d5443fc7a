import { readBlock, readTransfersBetween } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { LONGEST_PART, type Range, readInParts } from "../chains/evm/ranges.ts";
import { readReceipt } from "../chains/evm/send.ts";
import { ChainFault } from "../chains/faults.ts";
import type { SeenTransfer } from "../chains/movements.ts";
import type { Cursor } from "../db/cursors.ts";
import { listInFlight } from "../db/transactions.ts";
import type { TransferDeps } from "./deps.ts";
import { type Landed, listSources, markTags, markTimes, type Reading, requireLogs } from "./reading.ts";

/** The newest blocks are always read one by one, whatever the finality, and so are gaps no longer than this. */
const NEAR = 16;

/**
 * Reads the next range of a long gap, as downtime leaves one: a few calls, however many blocks. Only of blocks that are
 * final, so that the range stands on the cursor when both its ends stand in the chain; whoever confirms what is in it
 * reads it once more first. Undefined when the gap is short, when the cursor's block is gone (a reorg), or when the
 * endpoint refuses ranges altogether: then the blocks are read one by one.
 */
export async function readGap(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  { from, head }: { from: Cursor; head: number },
): Promise<Reading | undefined> {
  const longest = Math.min(from.number + LONGEST_PART, head - NEAR);
  if (longest - from.number <= NEAR) return undefined;
  const to = Math.min(longest, await readFinal(chain, head));
  if (to - from.number <= NEAR) return undefined;
  const [first, last] = await Promise.all([readBlock(chain.rpc, from.number), readBlock(chain.rpc, to)]);
  if (first.hash !== from.hash) return undefined;
  const range = { from: from.number + 1, to };
  const seen = await readMovements(chain, range).catch((error: unknown) => {
    if (error instanceof ChainFault && error.code === "rpc_answer") return undefined;
    throw error;
  });
  if (!seen) return undefined;
  const landed = await readLandedBetween(deps, chain, range);
  requireLogs(chain, landed, seen);
  await markTags(chain, seen);
  await markTimes(deps, chain, seen);
  return { blocks: [last], seen, landed };
}

async function readMovements(chain: EvmChain, range: Range): Promise<SeenTransfer[]> {
  const sources = listSources(chain);
  const seen: SeenTransfer[] = [];
  const parts = readInParts(range, (part) => readTransfersBetween(chain.rpc, part, sources));
  for await (const { found } of parts) seen.push(...found);
  return seen;
}

/** The highest block that an endpoint calls final now. */
async function readFinal(chain: EvmChain, head: number): Promise<number> {
  const { finality } = chain.network;
  return typeof finality === "object" ? head - finality.blocks + 1 : (await readBlock(chain.rpc, finality)).number;
}

/** No block of the range says what is in it, so what we have in flight is asked for. */
async function readLandedBetween(deps: Pick<TransferDeps, "db">, chain: EvmChain, range: Range): Promise<Landed[]> {
  const rows = await listInFlight(deps.db, chain.chain);
  const found = await Promise.all(rows.map(async (row) => ({ row, receipt: await readReceipt(chain.rpc, row.hash) })));
  return found.flatMap(({ row, receipt }) =>
    receipt && receipt.blockNumber >= range.from && receipt.blockNumber <= range.to ? [{ row, receipt }] : [],
  );
}
