import { type Hex, hexToBigInt, hexToNumber, numberToHex } from "viem";
import { ChainFault } from "../faults.ts";
import type { SeenTransfer } from "../movements.ts";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "./abi.ts";
import { COLLECTED_TOPIC } from "./collector.ts";
import { DISBURSED_TOPIC } from "./disburser.ts";
import { type Contracts, pairLogs } from "./movements.ts";
import type { Range } from "./ranges.ts";
import type { Rpc } from "./rpc.ts";
import { describeRpcError, throwFault } from "./rpc-errors.ts";

/** What we keep of a block. `at` is its own clock; `baseFee` in wei per gas; `hashes` are its transactions. */
export type Block = { number: number; hash: Hex; parentHash: Hex; at: Date; baseFee: bigint; hashes: readonly Hex[] };

/** Whose logs are read: the tokens', and those of the Collector and the Disburser, which say what transfers were for. */
export type Sources = Contracts & { tokens: readonly Hex[] };

/** Height of the newest block an endpoint knows. */
export async function readHead(rpc: Rpc): Promise<number> {
  return hexToNumber(await rpc({ method: "eth_blockNumber" }));
}

/** A block by height or tag. Throws ChainFault `rpc_behind` when the endpoint does not have it. */
export async function readBlock(rpc: Rpc, which: number | "latest" | "safe" | "finalized"): Promise<Block> {
  const tag = typeof which === "number" ? numberToHex(which) : which;
  const block = await rpc({ method: "eth_getBlockByNumber", params: [tag, false] }).catch(throwFault);
  if (!block?.hash || !block.number) throw new ChainFault("rpc_behind", { detail: `block ${which}` });
  return {
    number: hexToNumber(block.number),
    hash: block.hash,
    parentHash: block.parentHash,
    at: new Date(hexToNumber(block.timestamp) * 1000),
    baseFee: hexToBigInt(block.baseFeePerGas ?? "0x0"),
    hashes: block.transactions as Hex[],
  };
}

/**
 * Every movement of the tokens in one block, asked for by block hash: an endpoint that does not have the block says so
 * instead of answering a range with nothing. Throws ChainFault `rpc_behind` then.
 */
export async function readTransfers(rpc: Rpc, blockHash: Hex, sources: Sources): Promise<SeenTransfer[]> {
  const filter = { blockHash, ...toFilter(sources) };
  const logs = await rpc({ method: "eth_getLogs", params: [filter as never] }).catch((cause: unknown) => {
    if (cause instanceof ChainFault) throw cause;
    throw new ChainFault("rpc_behind", { cause, detail: describeRpcError(cause) });
  });
  return pairLogs(logs, sources);
}

/** The same for a range of blocks that the endpoint is known to have. Throws ChainFault `rpc_answer` when it is refused. */
export async function readTransfersBetween(rpc: Rpc, range: Range, sources: Sources): Promise<SeenTransfer[]> {
  const [fromBlock, toBlock] = [numberToHex(range.from), numberToHex(range.to)];
  const filter = { fromBlock, toBlock, ...toFilter(sources) };
  const logs = await rpc({ method: "eth_getLogs", params: [filter as never] }).catch(throwFault);
  return pairLogs(logs, sources);
}

function toFilter({ tokens, collector, disburser }: Sources) {
  const topics = [[TRANSFER_TOPIC, AUTHORIZATION_USED_TOPIC, COLLECTED_TOPIC, DISBURSED_TOPIC]];
  return { address: [...tokens, collector, disburser], topics };
}

/** Transactions whose logs have these topics at an address, in a range of blocks. ChainFault `rpc_answer` as above. */
export async function readHashes(
  rpc: Rpc,
  range: Range,
  logs: { address: Hex; topics: readonly (Hex | null)[] },
): Promise<Hex[]> {
  const [fromBlock, toBlock] = [numberToHex(range.from), numberToHex(range.to)];
  const filter = { fromBlock, toBlock, address: logs.address, topics: [...logs.topics] };
  const found = await rpc({ method: "eth_getLogs", params: [filter as never] }).catch(throwFault);
  return found.flatMap((log) => log.transactionHash ?? []);
}
