import { expect, onTestFinished, test } from "vitest";
import { createPayment, getStatus, pay } from "../../local/buyer-client.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { waitFor } from "../support/wait-for.ts";

test("a payment on a chain with slow blocks is reported as processing at every poll, and then as succeeded", async () => {
  const chain = await startChain();
  const fleet = await startFleet({ chain, workers: 1, change: { blockMs: 3_000 } });
  const buyer = await fundBuyer(chain);
  // The next block comes when the test has polled, however slow the machine is.
  onTestFinished(() => chain.client.setAutomine(true));
  await chain.client.setAutomine(false);
  const id = await createPayment(fleet.shop, { referenceId: "order", cents: "1250" });
  // A confirm waits two seconds for the verification. It answers requires_action when a slow machine needs longer.
  await pay(fleet.shop, id, buyer, chain.id);
  const isProcessing = async () => (await getStatus(fleet.shop, id)).status === "processing";
  await waitFor(isProcessing, { within: 20_000, what: "the payment is processing" });
  const seen = ["processing"];
  for (let polls = 0; polls < 4; polls += 1) seen.push((await getStatus(fleet.shop, id, 500)).status);
  expect(seen).toEqual(Array(5).fill("processing"));
  await chain.client.setAutomine(true);
  await mine(chain);
  const hasSucceeded = async () => {
    seen.push((await getStatus(fleet.shop, id, 500)).status);
    return seen.at(-1) === "succeeded";
  };
  await waitFor(hasSucceeded, { within: 30_000, what: "the payment succeeds" });
  expect(new Set(seen)).toEqual(new Set(["processing", "succeeded"]));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});
