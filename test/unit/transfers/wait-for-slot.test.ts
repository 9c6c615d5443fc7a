import { expect, test } from "vitest";
import { noteSlot, type SeenSlot, untilDue } from "../../../transfers/solana/wait-for-slot.ts";

const slotMs = 400;

/**
 * Watches slots that begin every `everyMs`, with passes of `passMs` between. Returns how long after its begin each slot was seen,
 * and the number of polls for it.
 */
function watchSlots({ everyMs, passMs, slots }: { everyMs: number; passMs: number; slots: number }) {
  const found: { lateMs: number; polls: number }[] = [];
  let seen: SeenSlot | undefined;
  for (let now = 130, next = 0; found.length < slots; now += passMs) {
    for (let [polls, waitMs] = [1, everyMs]; ; polls += 1) {
      const slot = Math.floor(now / everyMs);
      seen = noteSlot(seen, { slot, now, slotMs, isAwaited: waitMs <= slotMs / 8 });
      if (slot >= next) {
        found.push({ lateMs: now - slot * everyMs, polls });
        next = slot + 1;
        break;
      }
      waitMs = untilDue(seen, now, slotMs);
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
