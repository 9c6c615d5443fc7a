import { expect, test } from "vitest";
import { createPayment, getStatus, pay } from "../../local/buyer-client.ts";
import { fundBuyer, startChain, transfersTo } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";

const BLOCK_MS = 3_000;

test("a payment on a chain with slow blocks is reported as processing at every poll, and then as succeeded", async () => {
  const chain = await startChain({ blockTime: BLOCK_MS / 1_000 });
  const fleet = await startFleet({ chain, workers: 1, change: { blockMs: BLOCK_MS } });
  const id = await createPayment(fleet.shop, { referenceId: "order", cents: "1250" });
  const seen = [(await pay(fleet.shop, id, await fundBuyer(chain), chain.id)).status];
  for (let polls = 0; polls < 30 && seen.at(-1) !== "succeeded"; polls += 1)
    seen.push((await getStatus(fleet.shop, id, 500)).status);
  expect(seen.at(-1)).toBe("succeeded");
  expect(new Set(seen)).toEqual(new Set(["processing", "succeeded"]));
  expect(seen.filter((status) => status === "processing").length).toBeGreaterThan(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});
