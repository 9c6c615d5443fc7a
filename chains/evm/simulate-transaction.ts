import { BaseError, type Hex, numberToHex } from "viem";
import { parseAnswer } from "../errors.ts";
import type { Rpc } from "./evm-rpc.ts";
import type { FeeMembers } from "./fee-members.ts";
import { type CallOutcome, decodeMulticall, readRevert, requireResponsive } from "./multicall.ts";
import { describeRpcError, findRevertData, isUnfunded } from "./rpc-errors.ts";

/** A transaction before a lane signs it. */
export type UnsentTransaction = {
  from: Hex;
  to: Hex;
  data: Hex;
  gas: bigint;
} & FeeMembers;

/** `unfunded`: the sender cannot pay for the gas, so the outcome of the call is unknown. */
export type TransactionOutcome = CallOutcome | { ok: false; reason: string; unfunded: true };

/**
 * Simulates a whole transaction at the newest block with the sender, call data, gas limit and gas price of the later
 * broadcast, so that a payer's contract can detect the simulation by the block alone. Returns the outcome of its last
 * call. Throws ChainError if the endpoint does not answer.
 */
export async function simulateTransaction(
  rpc: Rpc,
  multicall: Hex,
  { from, to, data, gas, ...fees }: UnsentTransaction,
): Promise<TransactionOutcome> {
  const request = {
    from,
    to,
    data,
    gas: numberToHex(gas),
    ...(fees.type === "legacy"
      ? { gasPrice: numberToHex(fees.gasPrice) }
      : {
          maxFeePerGas: numberToHex(fees.maxFeePerGas),
          maxPriorityFeePerGas: numberToHex(fees.maxPriorityFeePerGas),
        }),
  };
  try {
    const answer = await rpc({ method: "eth_call", params: [request, "latest"] });
    const none: CallOutcome = { ok: false, reason: "the simulation returned no result" };
    return to === multicall ? (parseAnswer(() => decodeMulticall(answer)).at(-1) ?? none) : { ok: true, data: answer };
  } catch (error) {
    if (!(error instanceof BaseError)) throw error;
    const reverted = findRevertData(error);
    if (reverted !== undefined)
      return { ok: false, reason: reverted === "0x" ? describeRpcError(error) : readRevert(reverted) };
    const reason = describeRpcError(error);
    if (isUnfunded(error)) return { ok: false, reason, unfunded: true };
    if (/out ?of ?gas/i.test(reason)) return { ok: false, reason: `takes more than ${gas} gas` };
    await requireResponsive(rpc, multicall);
    return { ok: false, reason };
  }
}
