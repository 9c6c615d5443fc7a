import { type Hex, hexToNumber, numberToHex } from "viem";
import { z } from "zod";
import { ChainError } from "../../../chains/errors.ts";
import type { Call } from "../../../chains/json-rpc.ts";

const hex = z.string().transform((text) => text as Hex);
const Block = z.object({ number: hex, hash: hex, timestamp: hex }).nullable();

/** Reads a block from one endpoint, by height or tag. Throws ChainError, `rpc_behind` if the endpoint has none. */
export async function readBlock(
  call: Call,
  which: number | "latest" | "safe" | "finalized",
): Promise<{ number: number; hash: string; at: Date }> {
  const tag = typeof which === "number" ? numberToHex(which) : which;
  const block = Block.parse(await call("eth_getBlockByNumber", [tag, false]));
  if (!block) throw new ChainError("rpc_behind", { detail: `block ${which}` });
  return { number: hexToNumber(block.number), hash: block.hash, at: new Date(hexToNumber(block.timestamp) * 1_000) };
}
