import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { followMoves, type MovesFollower } from "../../../../api/polling/follow-moves.ts";

const followers: MovesFollower[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  for (const follower of followers.splice(0)) follower.close();
  vi.useRealTimers();
});

/** Follows a list of events that the test changes. Events of other machines count only for the newest id. */
async function setUp(more: { before?: number } = {}) {
  const events: { id: number; paymentId?: string }[] = [{ id: 1, paymentId: "pay_old" }];
  const state = { fails: false, reads: 0, before: 1, ...more };
  const found: string[] = [];
  const rewinds: number[] = [];
  const follower = followMoves({
    findEventBefore: async () => state.before,
    async listMovesAfter(after) {
      state.reads += 1;
      if (state.fails) throw new Error("no database");
      const moves = events.flatMap(({ id, paymentId }) => (paymentId && id > after ? [{ id, paymentId }] : []));
      return { newest: Math.max(0, ...events.map(({ id }) => id)), moves };
    },
    onMove: (paymentId) => void found.push(paymentId),
    onRewind: () => void rewinds.push(state.reads),
    log: pino({ level: "silent" }),
  });
  followers.push(follower);
  await vi.advanceTimersByTimeAsync(0);
  const second = () => vi.advanceTimersByTimeAsync(1_000);
  return { events, state, found, rewinds, follower, second };
}

test("every move after the start is reported once", async () => {
  const { events, found, second } = await setUp();
  events.push({ id: 2, paymentId: "pay_a" }, { id: 3 });
  for (let count = 0; count < 8; count += 1) await second();
  events.push({ id: 4, paymentId: "pay_a" });
  for (let count = 0; count < 8; count += 1) await second();
  expect(found).toEqual(["pay_a", "pay_a"]);
});

test("a move is reported whose transaction commits after one with a higher id", async () => {
  const { events, found, second } = await setUp();
  events.push({ id: 3, paymentId: "pay_b" });
  await second();
  await second();
  events.push({ id: 2, paymentId: "pay_a" });
  await second();
  expect(found).toEqual(["pay_b", "pay_a"]);
});

test("a move is reported whose transaction commits 15 seconds after one with a higher id, also one that began before the start", async () => {
  const { events, found, second } = await setUp({ before: 0 });
  events.push({ id: 4, paymentId: "pay_c" });
  for (let count = 0; count < 15; count += 1) await second();
  events.push({ id: 3, paymentId: "pay_b" });
  for (let count = 0; count < 5; count += 1) await second();
  expect(found).toEqual(["pay_old", "pay_c", "pay_b"]);
});

test("a database with fewer events was restored, and later moves are reported again", async () => {
  const { events, found, rewinds, second } = await setUp();
  events.push({ id: 2, paymentId: "pay_a" });
  for (let count = 0; count < 6; count += 1) await second();
  events.splice(1);
  await second();
  expect(rewinds).toHaveLength(1);
  events.push({ id: 2, paymentId: "pay_b" });
  await second();
  expect(found).toEqual(["pay_a", "pay_b"]);
  expect(rewinds).toHaveLength(1);
});

test("while the database cannot be read, the last moves are not known; afterwards they are reported", async () => {
  const { events, state, found, follower, second } = await setUp();
  expect(follower.isRecent()).toBe(true);
  state.fails = true;
  events.push({ id: 2, paymentId: "pay_a" });
  for (let count = 0; count < 3; count += 1) await second();
  expect(follower.isRecent()).toBe(false);
  state.fails = false;
  await second();
  expect(follower.isRecent()).toBe(true);
  expect(found).toEqual(["pay_a"]);
});
