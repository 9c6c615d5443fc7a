import { type Hex, hexToBigInt, hexToNumber, isHash, maxUint256, numberToHex } from "viem";
import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";
import { ChainError, parseAnswer } from "../errors.ts";
import type { Rpc } from "./evm-rpc.ts";
import { throwChainError } from "./rpc-errors.ts";

/**
 * The parts of a block that we use. `at` is the block's timestamp, `baseFee` is in wei per gas, `hashes` are its
 * transactions.
 */
export type Block = { number: number; hash: Hex; parentHash: Hex; at: Date; baseFee: bigint; hashes: readonly Hex[] };

/** Returns the height of the newest block that an endpoint has. Throws ChainError. */
export async function readHead(rpc: Rpc): Promise<number> {
  const answer = await rpc({ method: "eth_blockNumber" }).catch(throwChainError);
  return parseAnswer(() => hexToNumber(answer));
}

/** Returns a block by height or tag. Throws ChainError `rpc_behind` if the endpoint does not have it. */
export async function readBlock(rpc: Rpc, which: number | "latest" | "safe" | "finalized"): Promise<Block> {
  const tag = typeof which === "number" ? numberToHex(which) : which;
  const block = await rpc({ method: "eth_getBlockByNumber", params: [tag, false] }).catch(throwChainError);
  if (!block?.hash || !block.number) throw new ChainError("rpc_behind", { detail: `block ${which}` });
  const { hash, number } = block;
  return parseAnswer(() => ({
    number: hexToNumber(number),
    hash: requireHash(hash),
    parentHash: requireHash(block.parentHash),
    at: readTime(block.timestamp),
    baseFee: readWord(block.baseFeePerGas ?? "0x0"),
    hashes: block.transactions.filter((one) => typeof one === "string").map(requireHash),
  }));
}

// What the database cannot store must count as an answer of another form: otherwise each pass would end with its error.

function requireHash(hash: Hex): Hex {
  if (!isHash(hash)) throw new TypeError("a hash is malformed");
  return hash;
}

/** Returns a time in Unix seconds as a date. Throws for one that no date can hold. */
function readTime(seconds: Hex): Date {
  const at = new Date(hexToNumber(seconds) * 1000);
  if (Number.isNaN(at.getTime())) throw new RangeError(`the time ${seconds} is too late`);
  return at;
}

function readWord(hex: Hex): bigint {
  const value = hexToBigInt(hex);
  if (value > maxUint256) throw new RangeError("a number has more than 32 bytes");
  return value;
}

/** Returns the highest block that an endpoint reports as final by the network's policy. */
export async function readFinalHeight(
  { network }: { network: Pick<EvmNetwork, "finality"> },
  rpc: Rpc,
): Promise<number> {
  const { finality } = network;
  if (typeof finality === "object") return (await readHead(rpc)) - finality.blocks + 1;
  return (await readBlock(rpc, finality)).number;
}
