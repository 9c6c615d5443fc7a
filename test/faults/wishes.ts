import { setTimeout as pause } from "node:timers/promises";
import type { Account, Address, Hex } from "viem";
import { operator } from "../../ops/local/chain-client.ts";
import { atEnd } from "../support/at-end.ts";
import { type EvmStage, finalityBlocks } from "./evm-stage.ts";

/**
 * A state of a contract that is to hold: the call is sent until `holds` returns true, and for as long afterwards as a
 * reorg may still take it back.
 */
export type Wish = {
  to: Address;
  data: Hex;
  holds(): Promise<boolean>;
  /** The sender; the operator unless named. */
  account?: Account | Address;
};

export type Wishes = {
  /** Replaces the wish of the same name. */
  make(name: string, wish: Wish): void;
  /** True as soon as the wish holds on the newest block, false when that takes longer than `withinMs`. */
  until(name: string, withinMs: number): Promise<boolean>;
};

/** Above any spike of a run, and before everybody else in a block. */
export const topFees = { gas: 300_000n, maxFeePerGas: 300_000_000_000n, maxPriorityFeePerGas: 5_000_000_000n };
/** A transaction that has not come into so many blocks was lost. */
const patienceBlocks = 3n;

type Served = Wish & { sentAt?: bigint; heldAt?: bigint };

/** Serves wishes until the run is over, one transaction at a time. */
export function serveWishes(stage: EvmStage): Wishes {
  const wishes = new Map<string, Served>();
  const over = new AbortController();
  const served = serve(stage, wishes, over.signal);
  atEnd(async () => {
    over.abort();
    await served;
  });
  return {
    make: (name, wish) => void wishes.set(name, { ...wish }),
    async until(name, withinMs) {
      const wish = wishes.get(name);
      for (const end = Date.now() + withinMs; Date.now() < end && !over.signal.aborted; await pause(stage.blockMs / 2))
        if (await wish?.holds().catch(() => false)) return true;
      return false;
    },
  };
}

async function serve(stage: EvmStage, wishes: Map<string, Served>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // The chain is there; a nonce that a reorg took away is another one next time.
    for (const [name, wish] of wishes)
      await serveOne(stage, wish).then(
        (isDone) => isDone && wishes.get(name) === wish && wishes.delete(name),
        () => undefined,
      );
    await pause(stage.blockMs, undefined, { signal }).catch(() => undefined);
  }
}

/** True when the wish holds for good. */
async function serveOne({ client }: EvmStage, wish: Served): Promise<boolean> {
  const head = await client.getBlockNumber();
  if (await wish.holds()) {
    wish.heldAt ??= head;
    return head - wish.heldAt > finalityBlocks;
  }
  delete wish.heldAt;
  if (wish.sentAt !== undefined && head - wish.sentAt < patienceBlocks) return false;
  wish.sentAt = head;
  await client.sendTransaction({ account: wish.account ?? operator, to: wish.to, data: wish.data, ...topFees });
  return false;
}
