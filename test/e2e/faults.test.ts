import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { makeScratch } from "../../ops/local/scratch.ts";
import { families } from "../faults/plan.ts";
import { runSeed } from "../faults/run.ts";
import { atEnd } from "../support/at-end.ts";

const PAYMENTS = 60;
const SEED = 4;
/** The heavy fault of the short pass; the long runs deal them all. */
const RARE = "clocks";
/** So many payments that are confirmed in the moment of their deadline. */
const LATE = 3;

test("while everything breaks that may break, on both kinds of chains, no payment is lost, doubled or told wrongly", {
  // A minute and a half by itself; other tests run beside it.
  timeout: 400_000,
}, async () => {
  const dir = await makeScratch("faults");
  const options = { seed: SEED, payments: PAYMENTS, workers: 2, chains: families, rare: RARE } as const;
  const outcome = await runSeed({ ...options, dir, say: () => undefined });
  atEnd(() => rm(dir, { recursive: true, force: true }));

  expect(outcome.violations).toEqual([]);
  expect(new Set(outcome.injected.map(({ fault }) => fault)).size, "kinds of faults").toBe(52);
  // Those that live for seconds only may find the service away for all that time: then they are never made.
  const ended = Object.values(outcome.ends).reduce((sum, count) => sum + count);
  expect(ended).toBeGreaterThanOrEqual(PAYMENTS - LATE);
  expect(ended).toBeLessThanOrEqual(PAYMENTS);
});
