import { setTimeout as delay } from "node:timers/promises";
import { readHead } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";

/** How long one pass waits for a new slot, milliseconds. */
const SLOT_WAIT_MS = 1_500;
/** While payments wait, the watcher asks for a slot as often as this in the time of a slot, from shortly before it is due. */
const POLLS_PER_SLOT = 8;

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
    waitMs = inFlight ? Math.min(pollMs, untilDue(seen, now, slotMs)) : pollMs;
    await delay(waitMs);
  }
}

/**
 * Returns the newest slot with the time by which it has begun. A slot that was asked for just before has begun now. The time of
 * another one follows from an earlier slot. Slots that take longer than `slotMs` make that too early, until one is awaited.
 */
export function noteSlot(
  before: SeenSlot | undefined,
  { slot, now, slotMs, isAwaited }: { slot: number; now: number; slotMs: number; isAwaited: boolean },
): SeenSlot {
  if (!before) return { slot, beganBy: now };
  if (slot <= before.slot) return before;
  const expected = before.beganBy + (slot - before.slot) * slotMs;
  return { slot, beganBy: isAwaited ? now : Math.min(now, expected) };
}

/** Returns the time until the next poll, milliseconds. It begins one poll early, because the slot may have begun before it was seen. */
export function untilDue({ beganBy }: SeenSlot, now: number, slotMs: number): number {
  const step = slotMs / POLLS_PER_SLOT;
  return Math.max(step, beganBy + slotMs - step - now);
}
