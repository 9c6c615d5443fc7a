import { expect, test } from "vitest";
import { fundBuyers, startChain } from "../support/chain.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitQuiet } from "../support/invariants.ts";
import { insistOnPaying, runAtOnce, signPayments } from "../support/story.ts";

const COUNT = 200;

test("two worker processes on one lane pay 200 of 200 at concurrency 32, and no nonce error reaches a payment", async () => {
  const chain = await startChain({ lanes: 1 });
  const fleet = await startFleet({ chain, workers: 2 });
  const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 16), COUNT);

  const ends = await runAtOnce(signed, 32, (one) => insistOnPaying(fleet.shop, one));

  expect(ends.filter((end) => end.status !== "succeeded")).toEqual([]);
  await waitQuiet(fleet);
  await expectSound(fleet, chain, { succeeded: COUNT });
  const said = fleet.workers.flatMap((worker) => worker.lines).filter((line) => /nonce_too_low|nonce too/i.test(line));
  expect(said).toEqual([]);
  const carriers = await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address ?? "0x" });
  expect(carriers).toBeGreaterThan(0);
});
