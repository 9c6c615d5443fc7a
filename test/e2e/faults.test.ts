import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { makeScratch } from "../../ops/local/scratch.ts";
import { runSeed } from "../faults/run.ts";
import { atEnd } from "../support/at-end.ts";

const PAYMENTS = 40;
const SEED = 4;

test("while everything breaks that may break, no payment is lost, doubled or told wrongly", async () => {
  const dir = await makeScratch("faults");
  const outcome = await runSeed({ seed: SEED, payments: PAYMENTS, workers: 2, dir, say: () => undefined });
  atEnd(() => rm(dir, { recursive: true, force: true }));

  expect(outcome.violations).toEqual([]);
  expect(new Set(outcome.injected.map(({ fault }) => fault)).size, "kinds of faults").toBe(18);
  expect(Object.values(outcome.ends).reduce((sum, count) => sum + count)).toBe(PAYMENTS);
});
