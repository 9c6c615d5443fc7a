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
  const state = { fails: false, reads: 0, before: 1, after: 0, ...more };
  const found: string[] = [];
  const resets: number[] = [];
  const follower = followMoves({
    findEventBefore: async () => state.before,
    async listMovesAfter(after) {
      state.reads += 1;
      state.after = after;
      if (state.fails) throw new Error("no database");
      const moves = events.flatMap(({ id, paymentId }) => (paymentId && id > after ? [{ id, paymentId }] : []));
      return { newest: Math.max(0, ...events.map(({ id }) => id)), moves };
    },
    onMove: (paymentId) => void found.push(paymentId),
    onReset: () => void resets.push(state.reads),
    log: pino({ level: "silent" }),
  });
  followers.push(follower);
  await vi.advanceTimersByTimeAsync(0);
  const second = () => vi.advanceTimersByTimeAsync(1_000);
  return { events, state, found, resets, follower, second };
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
  const { events, found, resets, second } = await setUp();
  events.push({ id: 2, paymentId: "pay_a" });
  for (let count = 0; count < 6; count += 1) await second();
  events.splice(1);
  await second();
  expect(resets).toHaveLength(1);
  events.push({ id: 2, paymentId: "pay_b" });
  await second();
  expect(found).toEqual(["pay_a", "pay_b"]);
  expect(resets).toHaveLength(1);
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

test("after a minute without the database every payment is to be read again, and only the events of the last seconds are read", async () => {
  const { events, state, found, resets, follower, second } = await setUp();
  events.push({ id: 2, paymentId: "pay_a" });
  await second();
  state.fails = true;
  for (let id = 3; id < 63; id += 1) {
    // The transaction of event 50 commits later than the others.
    if (id !== 50) events.push({ id, paymentId: "pay_b" });
    await second();
  }
  // The newest event that is older than 20 s.
  state.before = 43;
  found.length = 0;
  expect([resets, follower.isRecent()]).toEqual([[], false]);
  state.fails = false;
  await second();
  expect([state.after, found.length, resets.length, follower.isRecent()]).toEqual([43, 18, 1, true]);
  events.push({ id: 63, paymentId: "pay_d" });
  await second();
  events.push({ id: 50, paymentId: "pay_c" });
  for (let count = 0; count < 5; count += 1) await second();
  expect([found.slice(18), resets.length]).toEqual([["pay_d", "pay_c"], 1]);
});

test("a pause of fifteen seconds has no such cost", async () => {
  const { events, state, found, resets, second } = await setUp();
  state.fails = true;
  events.push({ id: 2, paymentId: "pay_a" });
  for (let count = 0; count < 15; count += 1) await second();
  state.fails = false;
  await second();
  expect([found, resets]).toEqual([["pay_a"], []]);
});
