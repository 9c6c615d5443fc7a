import { randomBytes } from "node:crypto";
import { base58 } from "@scure/base";
import type { Images } from "./bank.ts";
import type { Landed } from "./history.ts";
import { nonceFrom } from "./nonces.ts";

export type Commitment = "processed" | "confirmed" | "finalized";

export type Slot = {
  slot: number;
  parent: number;
  /** Counts blocks; a rollback leaves slots without one. */
  height: number;
  blockhash: string;
  /** What a nonce account advanced in this slot gets. */
  nonce: Uint8Array;
  /** Seconds since 1970. */
  time: number;
  landed: Landed[];
  /** What the accounts changed in this slot were before it; empty once the slot is final. */
  images: Images;
};

/** Blocks for which a blockhash is good. */
const lifetime = 150;
/** Blocks kept to look back at: the SlotHashes sysvar holds so many. */
const kept = 512;

export type Slots = {
  tip(): Slot;
  at(commitment: Commitment): Slot;
  commitmentOf(slot: Slot): Commitment;
  /** Slots after the one that this commitment sees, newest first. */
  newerThan(commitment: Commitment): Slot[];
  /** The slot of a blockhash that still is good. */
  ofBlockhash(blockhash: string): Slot | undefined;
  lastValidHeight(slot: Slot): number;
  timeOf(slot: number): number | undefined;
  newest(count: number): Slot[];
  /** A new slot on top. */
  push(): Slot;
  /** Takes the newest slots away, newest first; final ones stay. The next slot's number goes on counting. */
  pop(count: number): Slot[];
};

/** The chain of slots. `finalAfter` slots on top of one make it final. */
export function openSlots(finalAfter: number, now: () => number): Slots {
  const chain: Slot[] = [make(0, 0, 0)];
  const byBlockhash = new Map(chain.map((slot) => [slot.blockhash, slot]));
  const times = new Map(chain.map(({ slot, time }) => [slot, time]));
  let next = 1;
  /** What was final once stays so, whatever is undone above it. */
  let finalHeight = 0;

  function make(slot: number, parent: number, height: number): Slot {
    const blockhash = base58.encode(randomBytes(32));
    const nonce = nonceFrom(blockhash);
    return { slot, parent, height, blockhash, nonce, time: Math.floor(now() / 1000), landed: [], images: new Map() };
  }

  const indexOf = (height: number): number => Math.max(0, height - (chain[0]?.height ?? 0));
  const atHeight = (height: number): Slot => chain[indexOf(height)] as Slot;
  const tip = (): Slot => chain.at(-1) as Slot;
  const heightOf = (commitment: Commitment): number => {
    if (commitment === "processed") return tip().height;
    return commitment === "confirmed" ? Math.max(finalHeight, tip().height - 1) : finalHeight;
  };

  return {
    tip,
    at: (commitment) => atHeight(heightOf(commitment)),
    commitmentOf({ height }) {
      if (height <= finalHeight) return "finalized";
      return height <= heightOf("confirmed") ? "confirmed" : "processed";
    },
    newerThan: (commitment) => chain.slice(indexOf(heightOf(commitment)) + 1).reverse(),
    ofBlockhash: (blockhash) => byBlockhash.get(blockhash),
    lastValidHeight: ({ height }) => height + lifetime,
    timeOf: (slot) => times.get(slot),
    newest: (count) => chain.slice(-count).reverse(),
    push() {
      const slot = make(next, tip().slot, tip().height + 1);
      next += 1;
      chain.push(slot);
      times.set(slot.slot, slot.time);
      byBlockhash.set(slot.blockhash, slot);
      for (const [blockhash, { height }] of byBlockhash) {
        if (height + lifetime >= slot.height) break;
        byBlockhash.delete(blockhash);
      }
      if (chain.length > kept + finalAfter) chain.shift();
      finalHeight = Math.max(finalHeight, slot.height - finalAfter);
      atHeight(finalHeight).images.clear();
      return slot;
    },
    pop(count) {
      const above = tip().height - finalHeight;
      const gone = chain.splice(chain.length - Math.min(count, above)).reverse();
      for (const slot of gone) {
        byBlockhash.delete(slot.blockhash);
        times.delete(slot.slot);
      }
      return gone;
    },
  };
}
