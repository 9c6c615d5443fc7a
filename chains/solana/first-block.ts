import { z } from "zod";
import type { Call } from "../json-rpc.ts";

/** Blocks from before 2021 have no height at some endpoints, and old ones no time. */
const Block = z.object({ blockHeight: z.number().nullish(), blockTime: z.number().nullish() });

/** Returns the slot in which an endpoint's history begins. Throws when the endpoint does not say. */
export async function askFirstSlot(call: Call): Promise<number> {
  return z.number().parse(await call("getFirstAvailableBlock", []));
}

/**
 * Where an endpoint's history begins: its first slot and, where the endpoint returns the block, the highest height that it can have, and
 * its time (Unix milliseconds).
 */
export type FirstBlock = { slot: number; height: number | undefined; at: number | undefined };

/**
 * Returns the first block of an endpoint's history. Throws when the endpoint does not say, and when it claims to keep all blocks and
 * does not return the first one: some return 0 when they do not know.
 */
export async function askFirstBlock(call: Call): Promise<FirstBlock> {
  const slot = await askFirstSlot(call);
  const options = { transactionDetails: "none", rewards: false, maxSupportedTransactionVersion: 0 };
  try {
    const { blockHeight, blockTime } = Block.parse(await call("getBlock", [slot, options]));
    // A slot has at most one block.
    return { slot, height: blockHeight ?? slot, at: typeof blockTime === "number" ? blockTime * 1_000 : undefined };
  } catch (error) {
    if (slot === 0) throw error;
    return { slot, height: undefined, at: undefined };
  }
}
