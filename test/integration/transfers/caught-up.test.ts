import { expect, test } from "vitest";
import { startChain } from "../../support/evm-chain.ts";
import { isCaughtUp } from "../../support/is-caught-up.ts";
import { makeTransfersFixture } from "../../support/transfers-fixture.ts";

test("a watcher that reached the head at a future time, by a clock that was set back, is not caught up", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  await fixture.watch();
  expect(await isCaughtUp(fixture.deps, chain.id)).toBe(true);
  fixture.clock.advance(-3_600_000);
  expect(await isCaughtUp(fixture.deps, chain.id)).toBe(false);
});
