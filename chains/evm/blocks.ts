import { type Hex, hexToBigInt, hexToNumber, numberToHex } from "viem";
import { ChainError } from "../errors.ts";
import type { EvmMovement } from "../token-movement.ts";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "./abi.ts";
import type { BlockRange } from "./block-ranges.ts";
import { COLLECTED_TOPIC } from "./collector-contract.ts";
import { DISBURSED_TOPIC } from "./disburser-contract.ts";
import type { Rpc } from "./evm-rpc.ts";
import { describeRpcError, throwChainError } from "./rpc-errors.ts";
import { type OurContracts, readTransferLogs } from "./transfer-logs.ts";

/**
 * The parts of a block that we use. `at` is the block's timestamp, `baseFee` is in wei per gas, `hashes` are its
 * transactions.
 */
export type Block = { number: number; hash: Hex; parentHash: Hex; at: Date; baseFee: bigint; hashes: readonly Hex[] };

/** The contracts whose logs are read: the tokens, and the Collector and Disburser, whose logs carry the nonces. */
export type LogSources = OurContracts & { tokens: readonly Hex[] };

/** Returns the height of the newest block that an endpoint has. */
export async function readHead(rpc: Rpc): Promise<number> {
  return hexToNumber(await rpc({ method: "eth_blockNumber" }));
}

/** Returns a block by height or tag. Throws ChainError `rpc_behind` if the endpoint does not have it. */
export async function readBlock(rpc: Rpc, which: number | "latest" | "safe" | "finalized"): Promise<Block> {
  const tag = typeof which === "number" ? numberToHex(which) : which;
  const block = await rpc({ method: "eth_getBlockByNumber", params: [tag, false] }).catch(throwChainError);
  if (!block?.hash || !block.number) throw new ChainError("rpc_behind", { detail: `block ${which}` });
  return {
    number: hexToNumber(block.number),
    hash: block.hash,
    parentHash: block.parentHash,
    at: new Date(hexToNumber(block.timestamp) * 1000),
    baseFee: hexToBigInt(block.baseFeePerGas ?? "0x0"),
    hashes: block.transactions.filter((one) => typeof one === "string"),
  };
}

/**
 * Returns every movement of the tokens in one block. The query names the block hash, because an endpoint without the
 * block refuses a hash but answers a range with an empty list. Throws ChainError `rpc_behind` if it lacks the block.
 */
export async function readTransfers(rpc: Rpc, blockHash: Hex, sources: LogSources): Promise<EvmMovement[]> {
  const filter = { blockHash, ...toFilter(sources) };
  const logs = await rpc({ method: "eth_getLogs", params: [filter] }).catch((cause: unknown) => {
    if (cause instanceof ChainError) throw cause;
    throw new ChainError("rpc_behind", { cause, detail: describeRpcError(cause) });
  });
  return readTransferLogs(logs, sources);
}

/**
 * Returns every movement of the tokens in blocks that the endpoint has. Throws ChainError `rpc_answer` if it refuses.
 */
export async function readTransfersBetween(rpc: Rpc, range: BlockRange, sources: LogSources): Promise<EvmMovement[]> {
  const [fromBlock, toBlock] = [numberToHex(range.from), numberToHex(range.to)];
  const filter = { fromBlock, toBlock, ...toFilter(sources) };
  const logs = await rpc({ method: "eth_getLogs", params: [filter] }).catch(throwChainError);
  return readTransferLogs(logs, sources);
}

function toFilter({ tokens, collector, disburser }: LogSources) {
  const topics = [[TRANSFER_TOPIC, AUTHORIZATION_USED_TOPIC, COLLECTED_TOPIC, DISBURSED_TOPIC]];
  return { address: [...tokens, collector, disburser], topics };
}

/**
 * Returns the hashes of transactions with matching logs in a range of blocks. Throws ChainError `rpc_answer` if it is
 * refused.
 */
export async function readTransactionHashes(
  rpc: Rpc,
  range: BlockRange,
  logs: { address: Hex; topics: readonly (Hex | null)[] },
): Promise<Hex[]> {
  const [fromBlock, toBlock] = [numberToHex(range.from), numberToHex(range.to)];
  const filter = { fromBlock, toBlock, address: logs.address, topics: [...logs.topics] };
  const found = await rpc({ method: "eth_getLogs", params: [filter] }).catch(throwChainError);
  return found.flatMap((log) => log.transactionHash ?? []);
}
