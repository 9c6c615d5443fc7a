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

test("positions of an earlier epoch do not count, because they are positions of another history", () => {
  expect(findDataTime([...samples, { at: 4_000, lsn: 35n, epoch: "b" }], { lsn: 30n, epoch: "b" })).toBeUndefined();
});

test("no replica is used after a promotion until a new epoch has begun", () => {
  expect(findDataTime([...samples, { at: 4_000, lsn: 25n, epoch: null }], { lsn: 30n, epoch: "a" })).toBeUndefined();
});
