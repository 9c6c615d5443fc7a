import { expect, test } from "vitest";
import { isTransient } from "../../../payments/is-transient.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { fundBuyers, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { openQueues } from "../../support/test-queues.ts";
import { waitFor } from "../../support/wait-for.ts";

const SETTLEMENTS = 4;
const ROUNDS = 5;

test("settlements that wait for the watcher enqueue no jobs, and begin when the watcher is back", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const ids: string[] = [];
  for (const buyer of await fundBuyers(chain, SETTLEMENTS)) ids.push(await fixture.pay(buyer));
  const queues = await openQueues();
  await queues.ready();
  const deps = { ...fixture.deps, enqueue: queues.enqueue, isTransient };
  const handlers = createHandlers(deps as Parameters<typeof createHandlers>[0]);
  const signal = new AbortController().signal;
  let run = 0;
  queues.serve("settle", (data) => {
    run += 1;
    return handlers.settle(data, signal);
  });
  const states = async () => {
    const rows = await Promise.all(ids.map((id) => fixture.settlementOf(id)));
    return rows.map(({ state }) => state);
  };

  for (let round = 1; round <= ROUNDS; round += 1) {
    // No worker watches the chain, and every due time passes.
    fixture.clock.advance(120_000);
    await handlers.sweep({ at: round }, signal);
    expect((await queues.count("settle")).all).toBe(0);
  }
  expect(run).toBe(0);
  expect(await states()).toEqual(Array(SETTLEMENTS).fill("due"));

  await fixture.watch();
  fixture.clock.advance(30_000);
  await handlers.sweep({ at: ROUNDS + 1 }, signal);
  const areBegun = async () => (await states()).every((state) => state === "paying");
  await waitFor(areBegun, { within: 10_000, what: "every settlement has begun" });
});
