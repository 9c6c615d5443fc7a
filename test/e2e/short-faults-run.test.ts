import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { makeScratch } from "../../local/scratch-folder.ts";
import { families } from "../faults/payment-plan.ts";
import { runSeed } from "../faults/run-seed.ts";
import { addCleanup } from "../support/cleanups.ts";

const PAYMENTS = 60;
const SEED = 4;
/** The heavy fault of this short run; the long runs cover all of them. */
const RARE = "clocks";
/** The number of payments that are confirmed at their deadline. */
const LATE = 3;

test("the service loses, duplicates and misreports no payment on either chain family while every fault is injected", async () => {
  const dir = await makeScratch("faults");
  const options = { seed: SEED, payments: PAYMENTS, workers: 2, chains: families, rare: RARE } as const;
  const outcome = await runSeed({ ...options, dir, say: () => undefined });
  addCleanup(() => rm(dir, { recursive: true, force: true }));

  expect(outcome.violations).toEqual([]);
  expect(new Set(outcome.injected.map(({ fault }) => fault)).size, "kinds of faults").toBe(52);
  // A payment that lives for seconds may never be created when the service is unavailable for its whole lifetime.
  const ended = Object.values(outcome.ends).reduce((sum, count) => sum + count);
  expect(ended).toBeGreaterThanOrEqual(PAYMENTS - LATE);
  expect(ended).toBeLessThanOrEqual(PAYMENTS);
}, 900_000);
