import { expect, test } from "vitest";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

test.each([1, 3, 6])(
  "the watcher follows a reorg of %i blocks around the start of the watch, and payments go on",
  async (depth) => {
    const chain = await startChain();
    await mine(chain, 2);
    const buyer = await fundBuyer(chain);
    const reorg = await prepareReorg(chain);
    await mine(chain, depth);
    const fixture = await makeMerchantFixture(chain);
    await fixture.watch();

    await reorg();
    await fixture.watch();
    const paymentId = await fixture.pay(buyer);
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    const cursor = await fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
    expect(cursor.number).toBe(Number(await chain.client.getBlockNumber()));
  },
);

test("the watcher follows a reorg of the blocks before the watch that happens while no worker watches", async () => {
  const chain = await startChain();
  const buyer = await fundBuyer(chain);
  const reorg = await prepareReorg(chain);
  await mine(chain, 2);
  const fixture = await makeMerchantFixture(chain);
  await reorg();
  await mine(chain, 3);
  expect((await fixture.status(await fixture.pay(buyer))).state).toBe("succeeded");
});
