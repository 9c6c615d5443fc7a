import { expect, test } from "vitest";
import { simulate } from "../../../../chains/solana/simulate-wire-bytes.ts";
import { answerEach, openCluster } from "./test-endpoints.ts";

const EXPIRED = { ok: false, reason: expect.stringContaining("blockhash has expired") };

/** Returns an endpoint that simulates every transaction in this slot, with this error. */
const simulating = (slot: number, err: unknown) => ({
  answer: answerEach(() => ({ result: { context: { slot }, value: { err, logs: [], unitsConsumed: 10 } } })),
});
const simulateAt = async (...endpoints: ReturnType<typeof simulating>[]) => {
  const { chain, requests } = await openCluster(...endpoints);
  return { outcome: await simulate(chain, Uint8Array.of(1)), calls: requests.map(({ length }) => length) };
};

test("a transaction whose blockhash the first endpoint has not reached is simulated by one that has", async () => {
  const { outcome } = await simulateAt(simulating(80, "BlockhashNotFound"), simulating(100, null));
  expect(outcome).toEqual({ ok: true, slot: 100, units: 10 });
  const refused = await simulateAt(simulating(80, "BlockhashNotFound"), simulating(100, "AccountInUse"));
  expect(refused.outcome).toEqual({ ok: false, reason: expect.stringContaining("would fail") });
});

test("a blockhash that no endpoint knows has expired, and so has one that only a lagging endpoint still knows", async () => {
  const unknown = await simulateAt(simulating(100, "BlockhashNotFound"), simulating(101, "BlockhashNotFound"));
  expect(unknown.outcome).toEqual(EXPIRED);
  const { outcome } = await simulateAt(simulating(100, "BlockhashNotFound"), simulating(80, null));
  expect(outcome).toEqual(EXPIRED);
});

test("a transaction whose blockhash the first endpoint knows is simulated once", async () => {
  expect((await simulateAt(simulating(100, null), simulating(100, null))).calls).toEqual([1, 0]);
});
