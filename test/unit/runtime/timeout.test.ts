import { expect, test } from "vitest";
import { TimeoutError, withTimeout } from "../../../runtime/timeout.ts";

const never = () => new Promise<never>(() => undefined);

test("work that ends in time returns its result or throws its own error", async () => {
  expect(await withTimeout(Promise.resolve(7), 10_000, "counting")).toBe(7);
  await expect(withTimeout(Promise.reject(new Error("broken")), 10_000, "counting")).rejects.toThrow("broken");
});

test("work that ends late throws a TimeoutError that names it, and its own late failure goes unnoticed", async () => {
  const work = Promise.withResolvers<never>();
  const timed = withTimeout(work.promise, 5, "counting");
  await expect(timed).rejects.toThrow(new TimeoutError("counting took longer than 5 ms"));
  work.reject(new Error("too late to matter"));
});

test("the caller may choose the error of late work", async () => {
  const error = new RangeError("no answer");
  await expect(withTimeout(never(), 5, () => error)).rejects.toBe(error);
});

test("work that ends in time leaves no timer behind", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  await withTimeout(Promise.resolve(), 60_000, "nothing");
  expect(timers()).toBeLessThanOrEqual(before);
});
