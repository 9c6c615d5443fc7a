import { setTimeout as delay } from "node:timers/promises";
import { readHead, readHeadFromEach } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";

/** How long one pass waits for a new slot, milliseconds. */
const SLOT_WAIT_MS = 1_500;
/** While payments wait, the watcher asks for a slot as often as this in the time of a slot, from shortly before it is due. */
const POLLS_PER_SLOT = 8;
/** A slot that is overdue by this many slots is asked for every `pollMs`: the cluster or its endpoint has stopped. */
const OVERDUE_SLOTS = 2;
/** A minute of slots. A cursor that is further above the head was not moved by this cluster. */
const MAX_AHEAD_SLOTS = 150;

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
 * Returns true for a cursor that the cluster has not reached, by two endpoints or the only one: an endpoint has answered once for
 * another cluster. Without this, each pass would wait for a new slot in vain until the cluster reaches the cursor.
 */
export async function isCursorTooHigh(
  chain: SolanaChain,
  { cursor, head }: { cursor: number; head: number },
): Promise<boolean> {
  const isBelow = (slot: number) => slot < cursor - MAX_AHEAD_SLOTS;
  if (!isBelow(head)) return false;
  const below = (await readHeadFromEach(chain)).filter(isBelow);
  if (below.length < Math.min(REQUIRED_ENDPOINTS, chain.network.rpc.length)) return false;
  seenSlots.delete(chain);
  return true;
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
