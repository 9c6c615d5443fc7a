import { type Hex, numberToHex, type RpcLog } from "viem";
import { ChainError, parseAnswer } from "../errors.ts";
import type { Rpc } from "./evm-rpc.ts";
import { classifyLogError } from "./log-errors.ts";
import type { BlockRange } from "./log-ranges.ts";
import { requireLogs } from "./require-logs.ts";
import { describeRpcError } from "./rpc-errors.ts";

/** Selects logs by contract and by topic at each position; a list accepts any of its members, null accepts all. */
export type LogFilter = { address: readonly Hex[]; topics: readonly (readonly Hex[] | null)[] };

/** The blocks to read: one by its hash, or a range. An endpoint without the block refuses a hash and answers a range. */
export type LogBlocks = { blockHash: Hex } | BlockRange;

/**
 * Returns the logs that any of the filters selects. A single block whose logs the endpoint refuses as too many is read by
 * its receipts. Throws ChainError `rpc_behind` if the endpoint lacks a block, `logs_refused` if it shows the logs of a
 * single block in neither way, and `rpc_answer` for any other refusal.
 */
export async function readLogs(rpc: Rpc, blocks: LogBlocks, filters: readonly LogFilter[]): Promise<RpcLog[]> {
  try {
    return (await Promise.all(filters.map((filter) => askLogs(rpc, blocks, filter)))).flat();
  } catch (cause) {
    if (cause instanceof ChainError) throw cause;
    const { kind } = classifyLogError(cause);
    const detail = describeRpcError(cause);
    if (kind === "too_large" && isSingle(blocks)) return readReceiptLogs(rpc, blocks, { filters, cause });
    if (kind === "refused") throw new ChainError("logs_refused", { cause, detail });
    if (kind === "behind") throw new ChainError("rpc_behind", { cause, detail });
    // An endpoint has many words for not having a block that a hash names.
    if ("blockHash" in blocks && kind === "unknown") throw new ChainError("rpc_behind", { cause, detail });
    throw new ChainError("rpc_answer", { cause, detail });
  }
}

async function askLogs(rpc: Rpc, blocks: LogBlocks, { address, topics }: LogFilter): Promise<RpcLog[]> {
  const where =
    "blockHash" in blocks ? blocks : { fromBlock: numberToHex(blocks.from), toBlock: numberToHex(blocks.to) };
  const params = { ...where, address: [...address], topics: topics.map((any) => any && [...any]) };
  const answer = await rpc({ method: "eth_getLogs", params: [params] });
  return parseAnswer(() => requireLogs(answer));
}

function isSingle(blocks: LogBlocks): boolean {
  return "blockHash" in blocks || blocks.from === blocks.to;
}

/** Reads the logs of a single block from all its receipts, whose size the filters do not reduce. */
async function readReceiptLogs(
  rpc: Rpc,
  blocks: LogBlocks,
  { filters, cause }: { filters: readonly LogFilter[]; cause: unknown },
): Promise<RpcLog[]> {
  const block = "blockHash" in blocks ? blocks.blockHash : numberToHex(blocks.from);
  const receipts = await rpc({ method: "eth_getBlockReceipts", params: [block] }).catch((error: unknown) => {
    if (error instanceof ChainError) throw error;
    const detail = `${describeRpcError(cause)}, and its receipts: ${describeRpcError(error)}`;
    throw new ChainError("logs_refused", { cause: error, detail });
  });
  if (!receipts) throw new ChainError("rpc_behind", { detail: `receipts of block ${block}` });
  const logs = parseAnswer(() => receipts.flatMap((receipt) => requireLogs(receipt.logs)));
  return logs.filter((log) => filters.some((filter) => isSelected(log, filter)));
}

/** Returns true if a filter selects a log, as eth_getLogs does it. Pure. */
export function isSelected(log: Pick<RpcLog, "address" | "topics">, { address, topics }: LogFilter): boolean {
  const topicsOf: readonly Hex[] = log.topics;
  return (
    address.includes(log.address.toLowerCase() as Hex) &&
    topics.every((any, position) => any === null || any.includes(topicsOf[position] ?? "0x"))
  );
}
