import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";

/** A batch forms no longer than this, milliseconds: its lane is leased meanwhile. */
const MAX_FORMING_MS = 500;
/** The part of a block for which a batch forms at most because the machine is busy: what forms when the block is made misses it. */
const BUSY_PART = 1 / 8;

/**
 * Returns how long a lane's next batch still forms, milliseconds: 0 when none of the lane's transactions waits for its
 * block. Otherwise a batch forms until the watcher has read that block, and at most for the time of a block divided by the
 * lane's window, so that the window is not full before the block, or for twice as long as the last batch took to send, so
 * that batches grow when the machine is busy, but for no more than an eighth of a block. Pure.
 * @param newest when the newest transaction that waits for its block was signed
 * @param sendMs how long the last batch took to send, milliseconds
 */
export function formingMs(
  { blockMs, laneWindow }: { blockMs: number; laneWindow: number },
  { newest, sendMs, now }: { newest: Date | null; sendMs: number; now: Date },
): number {
  if (newest === null) return 0;
  const busyMs = Math.min(2 * sendMs, BUSY_PART * blockMs);
  const most = Math.min(Math.max(blockMs / laneWindow, busyMs), MAX_FORMING_MS);
  return Math.min(most, Math.max(0, Math.ceil(newest.getTime() + most - now.getTime())));
}

/** How long the last batch of each chain took to send, milliseconds. */
const sendTimes = new WeakMap<EvmChain, number>();

/** Notes how long a batch took to send, milliseconds. */
export function noteSendTime(chain: EvmChain, ms: number): void {
  sendTimes.set(chain, ms);
}

/** Returns how long the last batch of a chain took to send, milliseconds. */
export function lastSendMs(chain: EvmChain): number {
  return sendTimes.get(chain) ?? 0;
}

/** Functions that end the waits for the next block of a chain. */
const waits = new WeakMap<EvmChain, Set<() => void>>();

/** Waits until this process reads a block with transactions of ours, or for `ms`. */
export async function waitForInclusion(chain: EvmChain, ms: number): Promise<void> {
  const waiting = waits.get(chain) ?? new Set();
  waits.set(chain, waiting);
  await new Promise<void>((resolve) => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      waiting.delete(end);
      resolve();
    }
    waiting.add(end);
  });
}

/** Ends the waits of `waitForInclusion`. Call it when transactions of ours are recorded as included. */
export function noteInclusion(chain: EvmChain): void {
  for (const end of waits.get(chain) ?? []) end();
}
