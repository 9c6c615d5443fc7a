import { expect, test } from "vitest";
import { findDataTime } from "../../../db/replica-position.ts";

const samples = [
  { at: 1_000, lsn: 10n, epoch: "a" },
  { at: 2_000, lsn: 20n, epoch: "a" },
  { at: 3_000, lsn: 20n, epoch: "a" },
];

test("a replica's data is as new as the primary's newest position that it has replayed", () => {
  expect(findDataTime(samples, { lsn: 19n, epoch: "a" })).toBe(1_000);
  expect(findDataTime(samples, { lsn: 20n, epoch: "a" })).toBe(3_000);
});

test("the age is unknown when the replica is behind every known position, or no position is known", () => {
  expect(findDataTime(samples, { lsn: 9n, epoch: "a" })).toBeUndefined();
  expect(findDataTime([], { lsn: 9n, epoch: "a" })).toBeUndefined();
});

test("a replica with commits that a restored primary no longer has is not used, however far it is", () => {
  expect(findDataTime([...samples, { at: 4_000, lsn: 15n, epoch: "b" }], { lsn: 30n, epoch: "a" })).toBeUndefined();
});
