import { expect, test } from "vitest";
import { dispatchSettlements, listBlockedPayouts, takePayouts } from "../../../payments/payouts/dispatch-payouts.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();

test("while the signer is down, payments succeed and payouts wait; they go on when it is back", async () => {
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  await signing.stop();
  const paymentId = await fixture.pay(await fundBuyer(chain), 300n);
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  const { id } = await fixture.settlementOf(paymentId);
  expect(await dispatchSettlements(fixture.deps, [id])).toEqual(["signer_unavailable"]);
  expect(await listBlockedPayouts(fixture.deps, 10)).toMatchObject([{ blockedBy: "signer_unavailable", waiting: 1 }]);

  await signing.start();
  // The queue is checked again within a minute.
  fixture.clock.advance(60_000);
  await fixture.watch();
  const taken = await takePayouts(fixture.deps, "settlement");
  expect(taken.flatMap(({ ids }) => ids)).toEqual([id]);
  expect(await dispatchSettlements(fixture.deps, [id])).toEqual(["begun"]);
  expect(await listBlockedPayouts(fixture.deps, 10)).toEqual([]);
  fixture.clock.advance(-60_000);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, fixture.destination)).toBe(3_000_000n);
});

test("a deposit that is not final for the signer's own endpoints delays its payout", async () => {
  // The signer's networks file asks for more blocks than the service's.
  const signing = await startTestSigner(chain, { change: { finality: { blocks: 5 } } });
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
  expect(await fixture.settle(id)).toEqual(["not_final"]);
  await chain.client.mine({ blocks: 5 });
  expect(await fixture.settle(id)).toEqual(["begun"]);
});
