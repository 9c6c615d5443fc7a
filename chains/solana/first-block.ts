import { z } from "zod";
import type { Call } from "../json-rpc.ts";

const Block = z.object({ blockHeight: z.number() });

/** Returns the slot in which an endpoint's history begins. Throws when the endpoint does not say. */
export async function askFirstSlot(call: Call): Promise<number> {
  return z.number().parse(await call("getFirstAvailableBlock", []));
}

/** Where an endpoint's history begins: the slot and the height of its first block. */
export type FirstBlock = { slot: number; height: number };

/** Returns the first block of an endpoint's history. Throws when the endpoint does not say. */
export async function askFirstBlock(call: Call): Promise<FirstBlock> {
  const slot = await askFirstSlot(call);
  if (slot === 0) return { slot, height: 0 };
  const options = { transactionDetails: "none", rewards: false, maxSupportedTransactionVersion: 0 };
  const { blockHeight } = Block.parse(await call("getBlock", [slot, options]));
  return { slot, height: blockHeight };
}
