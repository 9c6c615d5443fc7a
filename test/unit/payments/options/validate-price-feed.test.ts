import { expect, test } from "vitest";
import { validatePriceFeed } from "../../../../payments/options/validate-price-feed.ts";

const source = { base: "iso4217/EUR", quote: "iso4217/USD", maxAgeSeconds: 100 };
const now = new Date("2026-03-01T12:00:00Z");
const good = { answer: 1n, decimals: 8, updatedAt: new Date(now.getTime() - 100_000), description: "EUR / USD" };

test("a price is used up to its maximum age and only when all its fields are valid", () => {
  expect(validatePriceFeed(source, good, now)).toBeUndefined();
  expect(validatePriceFeed(source, { ...good, updatedAt: new Date(now.getTime() - 100_001) }, now)).toMatch(
    /seconds old/,
  );
  expect(validatePriceFeed(source, { ...good, updatedAt: new Date(now.getTime() + 61_000) }, now)).toMatch(
    /in the future/,
  );
  expect(validatePriceFeed(source, { ...good, answer: 0n }, now)).toMatch(/price is 0/);
  expect(validatePriceFeed(source, { ...good, answer: -5n }, now)).toMatch(/price is -5/);
  expect(validatePriceFeed(source, { ...good, description: "USD / EUR" }, now)).toMatch(/description is/);
  expect(validatePriceFeed(source, { ...good, decimals: 77 }, now)).toMatch(/77 decimals/);
});

test("a rollup's price is used only after the sequencer has been up for its full grace period", () => {
  const onRollup = { ...source, sequencer: { feed: "0x01", graceSeconds: 60 } } as const;
  const upFor = (seconds: number) => ({ isUp: true, since: new Date(now.getTime() - seconds * 1_000) });
  expect(validatePriceFeed(onRollup, { ...good, sequencer: upFor(61) }, now)).toBeUndefined();
  expect(validatePriceFeed(onRollup, { ...good, sequencer: upFor(60) }, now)).toMatch(/only 60 seconds/);
  expect(validatePriceFeed(onRollup, { ...good, sequencer: upFor(-5) }, now)).toMatch(/only/);
  expect(validatePriceFeed(onRollup, { ...good, sequencer: { ...upFor(1_000), isUp: false } }, now)).toMatch(/is down/);
  expect(validatePriceFeed(onRollup, good, now)).toMatch(/is down/);
});

test("a price or a sequencer whose time is none is not used, whatever the limits are", () => {
  const never = new Date(Number.NaN);
  const unlimited = { ...source, maxAgeSeconds: Number.POSITIVE_INFINITY };
  expect(validatePriceFeed(unlimited, { ...good, updatedAt: never }, now)).toBeDefined();
  const onRollup = { ...source, sequencer: { feed: "0x01", graceSeconds: 60 } } as const;
  expect(validatePriceFeed(onRollup, { ...good, sequencer: { isUp: true, since: never } }, now)).toBeDefined();
});
