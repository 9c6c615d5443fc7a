import { type Hex, numberToHex } from "viem";
import { ChainFault } from "../faults.ts";
import { type CallOutcome, decodeMulticall, readRevert, requireAnswer } from "./multicall.ts";
import type { Rpc } from "./rpc.ts";
import { describeRpcError, findRevertData, isUnfunded } from "./rpc-errors.ts";

/** A transaction as a lane would sign it. */
export type UnsentTransaction = {
  from: Hex;
  to: Hex;
  data: Hex;
  gas: bigint;
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
};

/** `unfunded`: the sender cannot pay for it, which says nothing about what it would do. */
export type TransactionOutcome = CallOutcome | { ok: false; reason: string; unfunded: true };

/**
 * Makes a whole transaction at the newest block just as it would be sent: the same sender, call data, gas and gas price. A
 * payer's code sees no more of a difference than the block itself. Returns what its last call came to.
 * Throws ChainFault when the endpoint does not answer.
 */
export async function simulateTransaction(
  rpc: Rpc,
  multicall: Hex,
  { from, to, data, ...numbers }: UnsentTransaction,
): Promise<TransactionOutcome> {
  const { gas, maxFeePerGas, maxPriorityFeePerGas } = numbers;
  const request = {
    ...{ from, to, data, gas: numberToHex(gas) },
    ...{ maxFeePerGas: numberToHex(maxFeePerGas), maxPriorityFeePerGas: numberToHex(maxPriorityFeePerGas) },
  };
  try {
    const answer = await rpc({ method: "eth_call", params: [request, "latest"] });
    const none: CallOutcome = { ok: false, reason: "the simulation gave no answer" };
    return to === multicall ? (decodeMulticall(answer).at(-1) ?? none) : { ok: true, data: answer };
  } catch (error) {
    if (error instanceof ChainFault) throw error;
    const reverted = findRevertData(error);
    if (reverted !== undefined)
      return { ok: false, reason: reverted === "0x" ? describeRpcError(error) : readRevert(reverted) };
    const reason = describeRpcError(error);
    if (isUnfunded(error)) return { ok: false, reason, unfunded: true };
    if (/out ?of ?gas/i.test(reason)) return { ok: false, reason: `takes more than ${gas} gas` };
    await requireAnswer(rpc, multicall);
    return { ok: false, reason };
  }
}
