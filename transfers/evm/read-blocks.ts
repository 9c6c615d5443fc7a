import { ChainError, type ChainErrorCode } from "../../chains/errors.ts";
import { isWatched, readAccountMovements, type WatchedAccounts } from "../../chains/evm/account-logs.ts";
import { type Block, readBlock } from "../../chains/evm/blocks.ts";
import { readReceipt } from "../../chains/evm/evm-broadcast.ts";
import type { Rpc } from "../../chains/evm/evm-rpc.ts";
import { type KeptReadings, openKeptReadings } from "../../chains/evm/kept-readings.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readNaturalKeys } from "../../chains/evm/transaction-movements.ts";
import { readTransferLogs } from "../../chains/evm/transfer-logs.ts";
import type { EvmMovement } from "../../chains/token-movement.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import { type EvmTransactionRow, listByHashes } from "../../db/queries/transactions.ts";
import { listByAuthorizations } from "../../db/queries/transfers.ts";
import { isProof } from "../match-movements.ts";
import type { IncludedTransaction, Recordable } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { keepRelevant, listWatchedAccounts } from "./watched-accounts.ts";

/**
 * The content of consecutive blocks: movements of our accounts, and our own transactions with their receipts. A range was not
 * read by the hashes of its blocks, and `blocks` has only its last one.
 */
export type Reading = Recordable & { blocks: readonly Block[]; isRange: boolean };

/** The cursor's block after which the last reading of each endpoint ended, because the endpoint did not show all receipts. */
const brokenOff = new WeakMap<Rpc, string>();

/** How long the time of a block is kept after its last use, milliseconds, and of how many blocks of each endpoint. */
const TIMES_MS = 5 * 60_000;
const MAX_TIMES = 10_000;
/** The times of blocks that each endpoint has shown, by hash: a reading that an endpoint breaks off gets further each time. */
const times = new WeakMap<Rpc, KeptReadings<Date>>();

/**
 * Reads the blocks after a cursor concurrently: the header and the movements of our accounts of each, and the receipts of the
 * transactions that made them or that we sent. `known` is a block that was read from the same endpoint already.
 * Returns the blocks that continue the cursor without a gap, or undefined when the first one does not (a reorg). Throws
 * ChainError `rpc_behind` when the endpoint does not have the first block, or part of a block's content, yet.
 */
export async function readBlocks(
  deps: Pick<TransferDeps, "db" | "now">,
  chain: EvmChain,
  range: { from: Cursor; to: number; known?: Block | undefined },
): Promise<Reading | undefined> {
  const { from, to, known } = range;
  const read = async (number: number) => (number === known?.number ? known : readBlock(chain.rpc, number));
  // The headers and logs of many blocks would use up again what the endpoint allows, before the receipts are asked for.
  const last = brokenOff.get(chain.rpc) === from.blockId ? from.number + 1 : to;
  const numbers = Array.from({ length: last - from.number }, (_, index) => from.number + 1 + index);
  const linked = keepLinked(from.blockId, await readLeading(numbers, read));
  if (linked.length === 0) return undefined;
  const [accounts, ours] = await Promise.all([
    listWatchedAccounts(deps, chain),
    listByHashes(deps.db, { chain: chain.chain, hashes: linked.flatMap(({ hashes }) => hashes) }),
  ]);
  const [found, receipts] = await Promise.all([
    readLeading(linked, ({ hash }) => readAccountMovements(chain.rpc, { blockHash: hash }, accounts)),
    Promise.allSettled(ours.map((row) => readLanded(chain, linked, row))),
  ]);
  const blocks = linked.slice(0, found.length);
  const inBlocks = new Set<string>(blocks.flatMap(({ hashes }) => hashes));
  const landed = ours.flatMap(({ hash }, index) => {
    const receipt = receipts[index];
    if (!receipt || !inBlocks.has(hash)) return [];
    if (receipt.status === "rejected") throw receipt.reason;
    return [receipt.value];
  });
  const timeOf = new Map(blocks.map(({ hash, at }) => [hash as string, at]));
  brokenOff.set(chain.rpc, from.blockId);
  const seen = await completeMovements(deps, chain, { accounts, landed, found: found.flat() });
  brokenOff.delete(chain.rpc);
  return { blocks, seen: seen.map((log) => ({ ...log, at: timeOf.get(log.blockId) })), landed, isRange: false };
}

/**
 * Returns the movements of some blocks with their natural keys: those that were found by account, and those in the receipts of
 * our own transactions. Throws ChainError `rpc_behind` when the logs lack a movement that our own receipts show, or when the
 * endpoint lacks a receipt.
 */
export async function completeMovements(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  {
    accounts,
    landed,
    found,
  }: { accounts: WatchedAccounts; landed: readonly IncludedTransaction[]; found: EvmMovement[] },
): Promise<EvmMovement[]> {
  const receipts = landed.map(({ receipt }) => receipt);
  const keyOf = (log: EvmMovement) => `${log.blockId} ${log.logIndex}`;
  const read = new Set(found.map(keyOf));
  const others = receipts
    .flatMap(({ logs }) => readTransferLogs(logs, chain))
    .filter((log) => accounts.tokens.includes(log.token) && !read.has(keyOf(log)));
  const missing = others.find((log) => isWatched(accounts, log));
  if (missing) throw new ChainError("rpc_behind", { detail: `logs of block ${missing.blockNumber}` });
  return readNaturalKeys(chain, [...(await keepRelevant(deps, chain, found)), ...others], receipts);
}

/**
 * Sets the block time of movements that may be unsolicited payments: those that belong to no known transfer, and those that can replace
 * a payment's transfer that was never sent. The time decides whether they arrived before the deadline. Range reads return no times.
 * Usually there is no such movement and nothing to read.
 */
export async function setBlockTimes(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  seen: readonly EvmMovement[],
): Promise<void> {
  const nonces = seen.flatMap((log) => log.authorizationNonce ?? []);
  const known = await listByAuthorizations(deps.db, { chain: chain.chain, nonces });
  const belongs = (log: EvmMovement, row: (typeof known)[number]) =>
    row.authorization_nonce === log.authorizationNonce &&
    (isProof(log, row) || row.purpose !== "payment" || row.state !== "ready");
  const fresh = seen.filter((log) => log.authorizationNonce !== null && !known.some((row) => belongs(log, row)));
  const kept = times.get(chain.rpc) ?? openKeptReadings<Date>({ keptMs: TIMES_MS, maxSize: MAX_TIMES });
  times.set(chain.rpc, kept);
  for (const [id, logs] of Map.groupBy(fresh, (log) => log.blockId)) {
    const at = kept.find(id) ?? (await readTime(chain, logs[0]?.blockNumber ?? 0, kept));
    for (const log of logs) log.at = at;
  }
}

async function readTime({ rpc }: EvmChain, number: number, kept: KeptReadings<Date>): Promise<Date> {
  const { hash, at } = await readBlock(rpc, number);
  kept.keep(hash, at);
  return at;
}

/** Returns the leading blocks that each have the previous one as parent. */
export function keepLinked<B extends { hash: string; parentHash: string }>(hash: string, blocks: readonly B[]): B[] {
  const linked: B[] = [];
  for (const block of blocks) {
    if (block.parentHash !== (linked.at(-1)?.hash ?? hash)) break;
    linked.push(block);
  }
  return linked;
}

/** Errors after which the blocks before are still read: endpoints lag behind, or limit the rate of calls. */
const LATER_CODES: readonly string[] = ["rpc_behind", "rpc_unreachable"] satisfies ChainErrorCode[];

/**
 * Reads concurrently, and returns the results before the first one that endpoints do not give yet, so that each pass advances
 * while a rate limit allows fewer calls than a pass makes. Throws the error of the first item, and any other error.
 */
async function readLeading<I, O>(items: readonly I[], read: (item: I) => Promise<O>): Promise<O[]> {
  const results = await Promise.allSettled(items.map(read));
  const leading: O[] = [];
  for (const result of results) {
    if (result.status === "fulfilled") leading.push(result.value);
    else if (leading.length > 0 && result.reason instanceof ChainError && LATER_CODES.includes(result.reason.code))
      break;
    else throw result.reason;
  }
  return leading;
}

async function readLanded(
  chain: EvmChain,
  blocks: readonly Block[],
  row: EvmTransactionRow,
): Promise<IncludedTransaction> {
  const receipt = await readReceipt(chain.rpc, row.hash);
  // A block contains the transaction, so an endpoint without its receipt lags.
  if (!receipt || !blocks.some((block) => block.hash === receipt.blockHash))
    throw new ChainError("rpc_behind", { detail: `receipt of ${row.hash}` });
  return { row, receipt };
}
