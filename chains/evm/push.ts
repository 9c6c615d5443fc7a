import { concat, decodeFunctionData, encodeFunctionData, type Hex, size, slice } from "viem";
import { tokenAbi } from "./abi.ts";

/**
 * A transfer that its owner sends by a transaction of his own: `transfer(receiver, amount)` of the token, with a tag of
 * 32 bytes behind the call data, which tokens do not read and which says what the transfer is for.
 */
export type Push = { receiver: Hex; amount: bigint; tag: Hex };

/** `transfer(address,uint256)` takes 4 + 2 × 32 bytes. */
const CALL_BYTES = 68;

/** Call data of a push. */
export function encodePush({ receiver, amount, tag }: Push): Hex {
  return concat([encodeFunctionData({ abi: tokenAbi, functionName: "transfer", args: [receiver, amount] }), tag]);
}

/** What call data says, if it is exactly that of a push; undefined for any other. Addresses in lower case. */
export function readPush(data: Hex): Push | undefined {
  if (size(data) !== CALL_BYTES + 32) return undefined;
  const tag = slice(data, CALL_BYTES);
  try {
    const call = decodeFunctionData({ abi: tokenAbi, data: slice(data, 0, CALL_BYTES) });
    if (call.functionName !== "transfer") return undefined;
    const [receiver, amount] = call.args;
    const push = { receiver: receiver.toLowerCase() as Hex, amount, tag };
    // Equal to the byte: nothing may hide in the unused bytes of the address.
    return encodePush(push) === data.toLowerCase() ? push : undefined;
  } catch {
    return undefined;
  }
}
