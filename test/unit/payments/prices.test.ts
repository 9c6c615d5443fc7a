import { expect, test } from "vitest";
import { findFeedFault } from "../../../payments/prices.ts";

const source = { base: "iso4217/EUR", quote: "iso4217/USD", maxAgeSeconds: 100 };
const now = new Date("2026-03-01T12:00:00Z");
const good = { answer: 1n, decimals: 8, updatedAt: new Date(now.getTime() - 100_000), description: "EUR / USD" };

test("a price is used up to its age, and not when anything about it is off", () => {
  expect(findFeedFault(source, good, now)).toBeUndefined();
  expect(findFeedFault(source, { ...good, updatedAt: new Date(now.getTime() - 100_001) }, now)).toMatch(/seconds old/);
  expect(findFeedFault(source, { ...good, updatedAt: new Date(now.getTime() + 61_000) }, now)).toMatch(/time to come/);
  expect(findFeedFault(source, { ...good, answer: 0n }, now)).toMatch(/says 0/);
  expect(findFeedFault(source, { ...good, answer: -5n }, now)).toMatch(/says -5/);
  expect(findFeedFault(source, { ...good, description: "USD / EUR" }, now)).toMatch(/calls itself/);
  expect(findFeedFault(source, { ...good, decimals: 77 }, now)).toMatch(/77 decimals/);
});

test("a rollup's price is used once the sequencer has been up for longer than its grace, and not a second before", () => {
  const onRollup = { ...source, sequencer: { feed: "0x01" as const, graceSeconds: 60 } };
  const upFor = (seconds: number) => ({ isUp: true, since: new Date(now.getTime() - seconds * 1_000) });
  expect(findFeedFault(onRollup, { ...good, sequencer: upFor(61) }, now)).toBeUndefined();
  expect(findFeedFault(onRollup, { ...good, sequencer: upFor(60) }, now)).toMatch(/60 seconds only/);
  expect(findFeedFault(onRollup, { ...good, sequencer: upFor(-5) }, now)).toMatch(/only/);
  expect(findFeedFault(onRollup, { ...good, sequencer: { ...upFor(1_000), isUp: false } }, now)).toMatch(/is down/);
  expect(findFeedFault(onRollup, good, now)).toMatch(/is down/);
});
