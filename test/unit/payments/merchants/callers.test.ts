import { expect, test } from "vitest";
import { describeEnd, hashKey } from "../../../../payments/merchants/callers.ts";

const end = new Date("2026-06-01T00:00:00.000Z");
const [current, former] = [hashKey("current"), hashKey("former")];
const key = { hash: current, previous_until: null, expires_at: null, revoked_at: null };
const at = (ms: number) => new Date(end.getTime() + ms);

test("a key without an end works", () => {
  expect(describeEnd(key, { hash: current, now: end })).toBeUndefined();
});

test("a key works until the moment before it expires", () => {
  const expiring = { ...key, expires_at: end };
  expect(describeEnd(expiring, { hash: current, now: at(-1) })).toBeUndefined();
  expect(describeEnd(expiring, { hash: current, now: end })).toBe("the API key expired at 2026-06-01T00:00:00.000Z");
  expect(describeEnd(expiring, { hash: current, now: at(1) })).toContain("expired");
});

test("a former secret works until the moment before its end, and the current one after it", () => {
  const rotated = { ...key, previous_until: end };
  expect(describeEnd(rotated, { hash: former, now: at(-1) })).toBeUndefined();
  expect(describeEnd(rotated, { hash: former, now: end })).toContain("replaced");
  expect(describeEnd(rotated, { hash: current, now: at(1) })).toBeUndefined();
});

test("a revoked or expired key works with neither secret", () => {
  const revoked = { ...key, previous_until: at(1), revoked_at: end };
  const expired = { ...key, previous_until: at(1), expires_at: end };
  for (const hash of [current, former]) {
    expect(describeEnd(revoked, { hash, now: end })).toContain("revoked");
    expect(describeEnd(expired, { hash, now: end })).toContain("expired");
  }
});
