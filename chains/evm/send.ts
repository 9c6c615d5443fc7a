import { type Hex, hexToBigInt, hexToNumber, type RpcLog } from "viem";
import { ChainFault } from "../faults.ts";
import type { Rpc } from "./rpc.ts";
import { describeRpcError } from "./rpc-errors.ts";

/**
 * What offering signed bytes came to. `unknown` means just that: they may be on their way. Only the chain itself can
 * say later whether a transaction happened; nothing here is a failure of a transfer.
 */
export type Offer =
  | { outcome: "accepted" }
  | { outcome: "unknown"; reason: string }
  | { outcome: "nonce_too_low"; reason: string }
  | { outcome: "underpriced"; reason: string }
  | { outcome: "no_gas_money"; reason: string }
  | { outcome: "refused"; reason: string };

/**
 * The words nodes use; there is no code for them, and Nethermind writes them without spaces. Known transactions count
 * as accepted: the same bytes are there.
 */
const words: readonly [RegExp, Offer["outcome"]][] = [
  [/already ?known|already imported|known transaction|already ?exists|already in mempool/i, "accepted"],
  [/nonce (is )?too low|nonce.*already used|old ?nonce/i, "nonce_too_low"],
  [
    /underpriced|max fee per gas less than block base fee|fee ?(cap)?.*(low|less)|gas price.*low|tip.*low|replacement ?not ?allowed/i,
    "underpriced",
  ],
  [/insufficient ?(funds|balance)/i, "no_gas_money"],
];

/** Sends stored bytes once. Never throws for what the network or the node says. */
export async function offerBytes(rpc: Rpc, bytes: Hex): Promise<Offer> {
  try {
    await rpc({ method: "eth_sendRawTransaction", params: [bytes] });
    return { outcome: "accepted" };
  } catch (error) {
    if (error instanceof ChainFault) return { outcome: "unknown", reason: error.message };
    const reason = describeRpcError(error);
    const known = words.find(([pattern]) => pattern.test(reason));
    return { outcome: known?.[1] ?? "refused", reason } as Offer;
  }
}

/** What became of a transaction that is in a block. `gasPrice` in wei per gas, `fee` in wei: all that its sender paid. */
export type Receipt = {
  hash: Hex;
  blockHash: Hex;
  blockNumber: number;
  reverted: boolean;
  gasUsed: bigint;
  gasPrice: bigint;
  fee: bigint;
  logs: readonly RpcLog[];
};

/** The receipt of a transaction, or undefined while the endpoint knows of none. */
export async function readReceipt(rpc: Rpc, hash: Hex): Promise<Receipt | undefined> {
  const receipt = await rpc({ method: "eth_getTransactionReceipt", params: [hash] });
  if (!receipt?.blockHash || !receipt.blockNumber) return undefined;
  const gasUsed = hexToBigInt(receipt.gasUsed);
  const gasPrice = hexToBigInt(receipt.effectiveGasPrice);
  // Rollups of the OP stack charge for their data apart from the gas, and say so in a member of their own.
  const { l1Fee = "0x0" } = receipt as { l1Fee?: Hex | null };
  return {
    hash,
    blockHash: receipt.blockHash,
    blockNumber: hexToNumber(receipt.blockNumber),
    reverted: receipt.status === "0x0",
    gasUsed,
    gasPrice,
    fee: gasUsed * gasPrice + hexToBigInt(l1Fee ?? "0x0"),
    logs: receipt.logs,
  };
}

/** The nonce an account uses next, by what is in blocks. */
export async function readNextNonce(rpc: Rpc, address: Hex): Promise<number> {
  return hexToNumber(await rpc({ method: "eth_getTransactionCount", params: [address, "latest"] }));
}

/** Native balance, wei. */
export async function readGasBalance(rpc: Rpc, address: Hex): Promise<bigint> {
  return hexToBigInt(await rpc({ method: "eth_getBalance", params: [address, "latest"] }));
}
