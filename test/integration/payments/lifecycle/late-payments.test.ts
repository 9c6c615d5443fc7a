import { expect, test } from "vitest";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

test("a payment is late when it succeeds after its chain's usual time to finality and a minute", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 30 } } });
  fixture.clock.stop();
  const buyer = await fundBuyer(chain);
  /** Pays, and lets time pass between the accepted confirm and the final block. */
  const payWithin = async (seconds: number) => {
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    await fixture.relay();
    fixture.clock.advance(seconds * 1_000);
    await mine(chain, 31);
    for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
    expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded" });
  };
  const readLate = async () => (await fixture.deps.metrics.latePayments.get()).values;
  const on = { labels: { chain: chain.id } };
  // One block a second: the target is 90 s.
  await payWithin(89);
  expect(await readLate()).toEqual([expect.objectContaining({ ...on, value: 0 })]);
  await payWithin(91);
  expect(await readLate()).toEqual([expect.objectContaining({ ...on, value: 1 })]);
});
