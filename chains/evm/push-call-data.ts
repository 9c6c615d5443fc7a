import { concat, decodeFunctionData, encodeFunctionData, type Hex, size, slice } from "viem";
import { tokenAbi } from "./abi.ts";
import { lowerCaseHex } from "./hex.ts";

/**
 * A transfer that the owner sends in their own transaction: `transfer(receiver, amount)` of the token, followed by a tag
 * of 32 bytes. Tokens ignore the tag; it identifies the payment.
 */
export type Push = { receiver: Hex; amount: bigint; tag: Hex };

/** Call data of transfer(address,uint256) has 4 + 2 × 32 bytes. */
const CALL_BYTES = 68;

/** Returns the call data of a push. */
export function encodePush({ receiver, amount, tag }: Push): Hex {
  return concat([encodeFunctionData({ abi: tokenAbi, functionName: "transfer", args: [receiver, amount] }), tag]);
}

/** Decodes the call data of a push, with the address in lower case. Returns undefined for any other call data. */
export function readPush(data: Hex): Push | undefined {
  if (size(data) !== CALL_BYTES + 32) return undefined;
  const tag = slice(data, CALL_BYTES);
  try {
    const call = decodeFunctionData({ abi: tokenAbi, data: slice(data, 0, CALL_BYTES) });
    if (call.functionName !== "transfer") return undefined;
    const [receiver, amount] = call.args;
    const push = { receiver: lowerCaseHex(receiver), amount, tag };
    // The comparison refuses data in the unused bytes of the address.
    return encodePush(push) === data.toLowerCase() ? push : undefined;
  } catch {
    return undefined;
  }
}
