import { setTimeout as delay } from "node:timers/promises";
import { readHead } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";

/** How long one pass waits for a new slot, milliseconds. */
const SLOT_WAIT_MS = 1_500;
/** While payments wait, the watcher asks for a slot as often as this in the time of a slot, from shortly before it is due. */
const POLLS_PER_SLOT = 8;
/** A slot that is overdue by this many slots is asked for every `pollMs`: the cluster or its endpoint has stopped. */
const OVERDUE_SLOTS = 2;

/** The newest slot that this process has seen, and the latest time at which it can have begun (performance.now). */
export type SeenSlot = { slot: number; beganBy: number };

const seenSlots = new WeakMap<SolanaChain, SeenSlot>();

/**
 * Waits until the head reaches a slot, for a limited time, and returns the head. Asks every `pollMs`, or, while transactions are
 * in flight, when the slot is due.
 */
export async function waitForSlot(
  chain: SolanaChain,
  slot: number,
  { signal, inFlight }: { signal: AbortSignal; inFlight: boolean },
): Promise<number> {
  const { pollMs, slotMs } = chain.network;
  const deadline = performance.now() + SLOT_WAIT_MS;
  for (let waitMs = Number.POSITIVE_INFINITY; ; ) {
    const head = await readHead(chain);
    const now = performance.now();
    const seen = noteSlot(seenSlots.get(chain), {
      slot: head,
      now,
      slotMs,
      isAwaited: waitMs <= slotMs / POLLS_PER_SLOT,
    });
    seenSlots.set(chain, seen);
    if (head >= slot || signal.aborted || now >= deadline) return head;
    waitMs = inFlight ? pollWait(seen, { now, slotMs, pollMs }) : pollMs;
    await delay(waitMs);
  }
}

/**
 * Returns the newest slot with the time by which it has begun. A slot that was asked for just before has begun now. The time of
 * another one follows from an earlier slot. Slots that take longer than `slotMs` make that too early, until one is awaited, by
 * the time of one slot at most.
 */
export function noteSlot(
  before: SeenSlot | undefined,
  { slot, now, slotMs, isAwaited }: { slot: number; now: number; slotMs: number; isAwaited: boolean },
): SeenSlot {
  if (!before) return { slot, beganBy: now };
  if (slot <= before.slot) return before;
  const expected = before.beganBy + (slot - before.slot) * slotMs;
  return { slot, beganBy: isAwaited ? now : Math.min(now, Math.max(expected, now - slotMs)) };
}

/**
 * Returns the time until the next poll, milliseconds. Polls begin one step early, because the slot may have begun before it was
 * seen.
 */
export function pollWait(
  { beganBy }: SeenSlot,
  { now, slotMs, pollMs }: { now: number; slotMs: number; pollMs: number },
): number {
  const step = slotMs / POLLS_PER_SLOT;
  const dueIn = beganBy + slotMs - now;
  if (dueIn < -OVERDUE_SLOTS * slotMs) return pollMs;
  return Math.min(pollMs, Math.max(step, dueIn - step));
}
