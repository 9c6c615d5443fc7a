import { expect, test } from "vitest";
import { fundBuyer, mine, startChain } from "../../support/chain.ts";
import { remember } from "../../support/remember.ts";
import { makeTill } from "../../support/till.ts";

test.each([1, 3, 6])(
  "the watcher follows a reorg of %i blocks around the start of the watch, and payments go on",
  async (depth) => {
    const chain = await startChain();
    await mine(chain, 2);
    const buyer = await fundBuyer(chain);
    const reorg = await remember(chain);
    await mine(chain, depth);
    const till = await makeTill(chain);
    await till.watch();

    await reorg();
    await till.watch();
    const paymentId = await till.pay(buyer);
    expect((await till.status(paymentId)).state).toBe("succeeded");
    const cursor = await till.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
    expect(cursor.number).toBe(Number(await chain.client.getBlockNumber()));
  },
);

test("the watcher follows a reorg of the blocks before the watch that happens while no worker watches", async () => {
  const chain = await startChain();
  const buyer = await fundBuyer(chain);
  const reorg = await remember(chain);
  await mine(chain, 2);
  const till = await makeTill(chain);
  await reorg();
  await mine(chain, 3);
  expect((await till.status(await till.pay(buyer))).state).toBe("succeeded");
});
