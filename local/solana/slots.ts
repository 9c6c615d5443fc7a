import { randomBytes } from "node:crypto";
import { base58 } from "@scure/base";
import type { Execution, Images } from "./bank.ts";
import { nonceFrom } from "./nonce-accounts.ts";

export type Commitment = "processed" | "confirmed" | "finalized";

export type Slot = {
  slot: number;
  parent: number;
  /** Counts blocks; a rollback leaves slots without one. */
  height: number;
  blockhash: string;
  /** The nonce of accounts that are advanced in this slot. */
  nonce: Uint8Array;
  /** Seconds since 1970. */
  time: number;
  landed: IncludedTransaction[];
  /** The states, before this slot, of the accounts that it changed; empty once the slot is final. */
  images: Images;
};

/** A transaction in a block. */
export type IncludedTransaction = {
  signature: string;
  bytes: Uint8Array;
  /** Its memos in the format of a validator: `[5] hello; [3] you`. */
  memo: string | null;
  slot: Slot;
  execution: Execution;
};

/** What is kept of every slot. */
type Block = Pick<Slot, "slot" | "parent" | "height" | "blockhash" | "time">;

/** Blocks for which a blockhash is valid. */
const lifetime = 150;
/** Blocks that are kept; the SlotHashes sysvar has as many. */
const kept = 512;

export type Slots = {
  tip(): Slot;
  at(commitment: Commitment): Slot;
  commitmentOf(slot: Slot): Commitment;
  /** Returns the slots after that of a commitment, newest first. */
  newerThan(commitment: Commitment): Slot[];
  /** Returns the slot of a blockhash that is still valid. */
  ofBlockhash(blockhash: string): Slot | undefined;
  lastValidHeight(slot: Slot): number;
  timeOf(slot: number): number | undefined;
  /** Returns the block of a slot. */
  blockOf(slot: number): Block | undefined;
  newest(count: number): Slot[];
  /** Adds a slot. */
  push(): Slot;
  /** Removes the newest slots, newest first; final slots stay. Slot numbers continue to increase. */
  pop(count: number): Slot[];
};

/** Opens the chain of slots. A slot is final after `finalityDepth` later slots. */
export function openSlots(finalityDepth: number, now: () => number): Slots {
  const chain: Slot[] = [make(0, 0, 0)];
  const byBlockhash = new Map(chain.map((slot) => [slot.blockhash, slot]));
  const blocks = new Map(chain.map((slot) => [slot.slot, toBlock(slot)]));
  let next = 1;
  /** A final slot stays final, even when later slots are removed. */
  let finalHeight = 0;

  function make(slot: number, parent: number, height: number): Slot {
    const blockhash = base58.encode(randomBytes(32));
    const nonce = nonceFrom(blockhash);
    return { slot, parent, height, blockhash, nonce, time: Math.floor(now() / 1000), landed: [], images: new Map() };
  }

  const indexOf = (height: number): number => Math.max(0, height - (chain[0]?.height ?? 0));
  const slotAt = (index: number): Slot => {
    const slot = chain.at(index);
    if (slot === undefined) throw new Error(`the chain has no slot at index ${index}`);
    return slot;
  };
  const atHeight = (height: number): Slot => slotAt(indexOf(height));
  const tip = (): Slot => slotAt(-1);
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
    timeOf: (slot) => blocks.get(slot)?.time,
    blockOf: (slot) => blocks.get(slot),
    newest: (count) => chain.slice(-count).reverse(),
    push() {
      const slot = make(next, tip().slot, tip().height + 1);
      next += 1;
      chain.push(slot);
      blocks.set(slot.slot, toBlock(slot));
      byBlockhash.set(slot.blockhash, slot);
      for (const [blockhash, { height }] of byBlockhash) {
        if (height + lifetime >= slot.height) break;
        byBlockhash.delete(blockhash);
      }
      if (chain.length > kept + finalityDepth) chain.shift();
      finalHeight = Math.max(finalHeight, slot.height - finalityDepth);
      atHeight(finalHeight).images.clear();
      return slot;
    },
    pop(count) {
      const above = tip().height - finalHeight;
      const gone = chain.splice(chain.length - Math.min(count, above)).reverse();
      for (const slot of gone) {
        byBlockhash.delete(slot.blockhash);
        blocks.delete(slot.slot);
      }
      return gone;
    },
  };
}

function toBlock({ slot, parent, height, blockhash, time }: Slot): Block {
  return { slot, parent, height, blockhash, time };
}
