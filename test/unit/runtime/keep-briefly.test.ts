import { expect, test } from "vitest";
import { keepBriefly } from "../../../runtime/keep-briefly.ts";

/** A store of which only names that begin with `known` exist. Each read takes as long as the test lets it. */
function makeStore({ most = 2 } = {}) {
  const reads: string[] = [];
  const clock = { now: 0 };
  const read = async (_from: null, name: string) => {
    reads.push(name);
    return name.startsWith("known") ? { name, at: clock.now } : undefined;
  };
  const options = { nameOf: (name: string) => name, maxAgeMs: 100, most, monotonic: () => clock.now };
  const kept = keepBriefly(read, options);
  return { kept, reads, clock, get: (name: string) => kept.read(null, name) };
}

test("a value is returned until its age is reached, and then read again", async () => {
  const { get, reads, clock } = makeStore();
  await get("known");
  clock.now = 99;
  expect(await get("known")).toMatchObject({ at: 0 });
  clock.now = 100;
  expect(await get("known")).toMatchObject({ at: 100 });
  expect(reads).toHaveLength(2);
});

test("the age of a value includes the time that its read took", async () => {
  const clock = { now: 0 };
  const slow = async () => {
    clock.now += 90;
    return "value";
  };
  let reads = 0;
  const counted = () => {
    reads += 1;
    return slow();
  };
  const kept = keepBriefly(counted, { nameOf: String, maxAgeMs: 100, most: 2, monotonic: () => clock.now });
  await kept.read(null, "one");
  clock.now = 100;
  await kept.read(null, "one");
  expect(reads).toBe(2);
});

test("any number of names that do not exist drops nothing that exists", async () => {
  const { get, reads } = makeStore({ most: 2 });
  await get("known 1");
  await get("known 2");
  for (let count = 0; count < 100; count += 1) await get(`random ${count}`);
  reads.length = 0;
  await get("known 1");
  await get("known 2");
  expect(reads).toEqual([]);
});

test("the oldest value is dropped when there are too many", async () => {
  const { get, reads } = makeStore({ most: 2 });
  for (const name of ["known 1", "known 2", "known 3"]) await get(name);
  reads.length = 0;
  await get("known 3");
  await get("known 2");
  expect(reads).toEqual([]);
  await get("known 1");
  expect(reads).toEqual(["known 1"]);
});

test("what was being read when everything was forgotten is not kept", async () => {
  const { get, kept, reads } = makeStore();
  const reading = get("known");
  kept.forget();
  await reading;
  await get("known");
  expect(reads).toHaveLength(2);
});

test("a failed read is not kept", async () => {
  let fails = true;
  const read = async () => {
    if (fails) throw new Error("the database is down");
    return "value";
  };
  const kept = keepBriefly(read, { nameOf: String, maxAgeMs: 100, most: 2, monotonic: () => 0 });
  await expect(kept.read(null, "one")).rejects.toThrow("down");
  fails = false;
  expect(await kept.read(null, "one")).toBe("value");
});
