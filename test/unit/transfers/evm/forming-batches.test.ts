import { describe, expect, test } from "vitest";
import { formingMs } from "../../../../transfers/evm/forming-batches.ts";

const network = { blockMs: 12_000, laneWindow: 32 };
const now = new Date(1_000_000);
const ago = (ms: number) => new Date(now.getTime() - ms);

describe("how long a lane's next batch forms", () => {
  test("not at all while none of the lane's transactions waits for its block", () => {
    expect(formingMs(network, { newest: null, sendMs: 200, now })).toBe(0);
  });

  test("for the time of a block divided by the lane's window, so that the window is not full before the block", () => {
    expect(formingMs(network, { newest: now, sendMs: 20, now })).toBe(375);
    expect(formingMs(network, { newest: ago(300), sendMs: 20, now })).toBe(75);
    expect(formingMs(network, { newest: ago(375), sendMs: 20, now })).toBe(0);
  });

  test("twice as long as the last batch took to send when that is more", () => {
    expect(formingMs({ ...network, blockMs: 1_000 }, { newest: ago(50), sendMs: 45, now })).toBe(40);
  });

  test("for an eighth of a block at most when sending is slow, so that few transfers wait for another block", () => {
    expect(formingMs({ ...network, blockMs: 1_000 }, { newest: now, sendMs: 400, now })).toBe(125);
  });

  test("no longer than half a second, whatever the clocks of other processes show", () => {
    expect(formingMs({ ...network, laneWindow: 2 }, { newest: now, sendMs: 5_000, now })).toBe(500);
    expect(formingMs(network, { newest: ago(-60_000), sendMs: 0, now })).toBe(375);
  });
});
