import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { makeScratch } from "../../ops/local/scratch.ts";
import { runSeed } from "../faults/run.ts";
import { atEnd } from "../support/at-end.ts";

const PAYMENTS = 40;
const SEED = 4;
/** Payments of so many that are confirmed in the moment of their deadline. */
const LATE = 2;

test("on Solana, while sends are forgotten, blockhashes die and slots are undone besides, the same holds", async () => {
  const dir = await makeScratch("faults");
  const options = { seed: SEED, payments: PAYMENTS, workers: 2, chains: ["solana"] as const };
  const outcome = await runSeed({ ...options, dir, say: () => undefined });
  atEnd(() => rm(dir, { recursive: true, force: true }));

  expect(outcome.violations).toEqual([]);
  expect(new Set(outcome.injected.map(({ fault }) => fault)).size, "kinds of faults").toBe(22);
});

test("while everything breaks that may break, no payment is lost, doubled or told wrongly", async () => {
  const dir = await makeScratch("faults");
  const outcome = await runSeed({
    seed: SEED,
    payments: PAYMENTS,
    workers: 2,
    chains: ["evm"],
    dir,
    say: () => undefined,
  });
  atEnd(() => rm(dir, { recursive: true, force: true }));

  expect(outcome.violations).toEqual([]);
  expect(new Set(outcome.injected.map(({ fault }) => fault)).size, "kinds of faults").toBe(19);
  // Both that live for seconds only may find the service away for all that time: then they are never made.
  const ended = Object.values(outcome.ends).reduce((sum, count) => sum + count);
  expect(ended).toBeGreaterThanOrEqual(PAYMENTS - LATE);
  expect(ended).toBeLessThanOrEqual(PAYMENTS);
});
