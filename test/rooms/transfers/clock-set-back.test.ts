import { expect, test } from "vitest";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { makeCarrier } from "../../support/carry.ts";
import { startChain } from "../../support/chain.ts";

test("a watcher that reached the head at a future time, by a clock that was set back, is not caught up", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  await carrier.watch();
  expect(await isCaughtUp(carrier.deps, chain.id)).toBe(true);
  carrier.clock.advance(-3_600_000);
  expect(await isCaughtUp(carrier.deps, chain.id)).toBe(false);
});
