import { type Hex, hexToBigInt, hexToNumber, numberToHex, pad, type RpcLog } from "viem";
import { ChainFault } from "../faults.ts";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "./abi.ts";
import { describeRpcError } from "./multicall.ts";
import type { Rpc } from "./rpc.ts";

/** What we keep of a block. `at` is its own clock; `baseFee` in wei per gas; `hashes` are its transactions. */
export type Block = { number: number; hash: Hex; parentHash: Hex; at: Date; baseFee: bigint; hashes: readonly Hex[] };

/** A token movement found in a block. `authorizationNonce` is there when it was made by EIP-3009. */
export type SeenTransfer = {
  blockHash: Hex;
  blockNumber: number;
  txHash: Hex;
  logIndex: number;
  token: Hex;
  payer: Hex;
  receiver: Hex;
  amount: bigint;
  authorizationNonce: Hex | null;
};

/** Height of the newest block an endpoint knows. */
export async function readHead(rpc: Rpc): Promise<number> {
  return hexToNumber(await rpc({ method: "eth_blockNumber" }));
}

/** A block by height or tag. Throws ChainFault `rpc_behind` when the endpoint does not have it. */
export async function readBlock(rpc: Rpc, which: number | "latest" | "safe" | "finalized"): Promise<Block> {
  const tag = typeof which === "number" ? numberToHex(which) : which;
  const block = await rpc({ method: "eth_getBlockByNumber", params: [tag, false] }).catch(rethrow);
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
export async function readTransfers(rpc: Rpc, blockHash: Hex, tokens: readonly Hex[]): Promise<SeenTransfer[]> {
  const filter = { blockHash, address: [...tokens], topics: [[TRANSFER_TOPIC, AUTHORIZATION_USED_TOPIC]] };
  const logs = await rpc({ method: "eth_getLogs", params: [filter as never] }).catch((cause: unknown) => {
    if (cause instanceof ChainFault) throw cause;
    throw new ChainFault("rpc_behind", { cause, detail: describeRpcError(cause) });
  });
  return pairLogs(logs);
}

/** The same for a range of blocks that the endpoint is known to have. */
export async function readTransfersBetween(
  rpc: Rpc,
  range: { from: number; to: number },
  tokens: readonly Hex[],
): Promise<SeenTransfer[]> {
  const [fromBlock, toBlock] = [numberToHex(range.from), numberToHex(range.to)];
  const filter = { fromBlock, toBlock, address: [...tokens], topics: [[TRANSFER_TOPIC, AUTHORIZATION_USED_TOPIC]] };
  return pairLogs(await rpc({ method: "eth_getLogs", params: [filter as never] }).catch(rethrow));
}

/** Transactions in which a payer's authorization was used (EIP-3009), in a range of blocks. */
export async function readUses(
  rpc: Rpc,
  range: { from: number; to: number },
  authorization: { token: Hex; payer: Hex; nonce: Hex },
): Promise<Hex[]> {
  const topics = [AUTHORIZATION_USED_TOPIC, pad(authorization.payer), authorization.nonce];
  const [fromBlock, toBlock] = [numberToHex(range.from), numberToHex(range.to)];
  const filter = { fromBlock, toBlock, address: authorization.token, topics };
  const logs = await rpc({ method: "eth_getLogs", params: [filter as never] }).catch(rethrow);
  return logs.flatMap((log) => log.transactionHash ?? []);
}

/**
 * Reads Transfer logs, each with the authorization nonce of the AuthorizationUsed log that stands directly before it on
 * the same token and names the same payer: that pair, and nothing else, proves an EIP-3009 transfer.
 */
export function pairLogs(logs: readonly RpcLog[]): SeenTransfer[] {
  const seen: SeenTransfer[] = [];
  const byIndex = new Map(logs.map((log) => [hexToNumber(log.logIndex ?? "0x0"), log]));
  for (const log of logs) {
    const [topic, from, to] = log.topics;
    // Three topics and one word of data: an ERC-20 Transfer. ERC-721 shares the selector and has four topics.
    if (topic !== TRANSFER_TOPIC || !from || !to || log.topics.length !== 3 || log.data.length !== 66) continue;
    if (!log.blockHash || !log.blockNumber || !log.transactionHash || !log.logIndex || log.removed) continue;
    const logIndex = hexToNumber(log.logIndex);
    const before = byIndex.get(logIndex - 1);
    const allowed =
      before?.topics[0] === AUTHORIZATION_USED_TOPIC &&
      !before.removed &&
      before.address === log.address &&
      before.transactionHash === log.transactionHash &&
      before.topics[1] === from;
    seen.push({
      blockHash: log.blockHash,
      blockNumber: hexToNumber(log.blockNumber),
      txHash: log.transactionHash,
      logIndex,
      token: log.address.toLowerCase() as Hex,
      payer: `0x${from.slice(-40)}`,
      receiver: `0x${to.slice(-40)}`,
      amount: hexToBigInt(log.data),
      authorizationNonce: allowed ? (before.topics[2] ?? null) : null,
    });
  }
  return seen;
}

function rethrow(cause: unknown): never {
  throw cause instanceof ChainFault ? cause : new ChainFault("rpc_answer", { cause, detail: describeRpcError(cause) });
}
