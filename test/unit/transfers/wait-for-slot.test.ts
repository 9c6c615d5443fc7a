import { expect, test } from "vitest";
import { noteSlot, pollWait, type SeenSlot } from "../../../transfers/solana/wait-for-slot.ts";

const slotMs = 400;
const pollMs = 1_000;

/**
 * Watches slots that begin every `everyMs`, with passes of `passMs` between. No slot begins for `haltMs` after slot 100. Returns
 * how long after its begin each slot was seen, and the number of polls for it.
 */
function watchSlots({
  everyMs,
  passMs,
  slots,
  haltMs = 0,
}: Record<"everyMs" | "passMs" | "slots", number> & { haltMs?: number }) {
  const beginOf = (slot: number) => slot * everyMs + (slot > 100 ? haltMs : 0);
  const slotAt = (now: number) => {
    const slot = Math.floor(now / everyMs);
    return slot <= 100 ? slot : Math.max(100, Math.floor((now - haltMs) / everyMs));
  };
  const found: { lateMs: number; polls: number }[] = [];
  let seen: SeenSlot | undefined;
  for (let now = 130, next = 0; found.length < slots; now += passMs) {
    for (let [polls, waitMs] = [1, everyMs]; ; polls += 1) {
      const slot = slotAt(now);
      seen = noteSlot(seen, { slot, now, slotMs, isAwaited: waitMs <= slotMs / 8 });
      if (slot >= next) {
        found.push({ lateMs: now - beginOf(slot), polls });
        next = slot + 1;
        break;
      }
      waitMs = pollWait(seen, { now, slotMs, pollMs });
      now += waitMs;
    }
  }
  return found.slice(5);
}

test.each([
  ["the expected time", 400],
  ["a tenth longer", 440],
  ["a tenth less", 360],
])("slots that take %s are seen within a quarter of a slot, with four polls at most", (_how, everyMs) => {
  const found = watchSlots({ everyMs, passMs: 20, slots: 200 });
  expect(Math.max(...found.map(({ lateMs }) => lateMs))).toBeLessThanOrEqual(slotMs / 4);
  expect(found.reduce((sum, { polls }) => sum + polls, 0) / found.length).toBeLessThanOrEqual(4);
});

test("passes that take longer than a slot do not wait", () => {
  expect(watchSlots({ everyMs: 400, passMs: 450, slots: 50 }).every(({ polls }) => polls === 1)).toBe(true);
});

test("a cluster that makes no slots is asked every pollMs, and every slot is seen in time when it goes on", () => {
  const haltMs = 60_000;
  const found = watchSlots({ everyMs: 400, passMs: 20, slots: 200, haltMs });
  expect(Math.max(...found.map(({ polls }) => polls))).toBeLessThanOrEqual(haltMs / pollMs + 3 * 8);
  const after = found.slice(101);
  expect(Math.max(...after.map(({ lateMs }) => lateMs))).toBeLessThanOrEqual(slotMs / 4);
  expect(Math.max(...after.map(({ polls }) => polls))).toBeLessThanOrEqual(8);
});
