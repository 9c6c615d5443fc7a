import { expect, test } from "vitest";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import {
  balanceOf,
  expectReconciled,
  payOut,
  restoreDatabase,
  settlementsOf,
  work,
} from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";

const UNIT = 1_000_000n;

/**
 * Restores a backup that has lost the payout of a payment of 5 USDC. The merchant has payments of `others` (cents) as well. `payLater` pays
 * the merchant 5 USDC more.
 */
async function losePayout({ others = [] as readonly bigint[] } = {}) {
  const chain = await startChain();
  const first = await makeMerchantFixture(chain);
  const { merchantId, destination } = first;
  const buyer = await fundBuyer(chain);
  const paymentId = await first.pay(buyer, 500n);
  for (const cents of others) await first.pay(await fundBuyer(chain), cents);
  const later = await first.create(500n);
  const had = await usdcBalance(chain, buyer.address);
  const restored = await restoreDatabase(first, chain, async (lost) => {
    expect(await lost.settle((await lost.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await lost.relay();
  });
  const request = async (units: bigint) => {
    const amount = { unit: `caip19/${chain.asset}`, value: units * UNIT };
    return unwrap(await refundPayment(restored.deps, { actor: testActor, paymentId, mode: "live", amount })).refundId;
  };
  const received = async () => (await usdcBalance(chain, buyer.address)) - had;
  const workFor = async (rounds: number) => {
    for (let round = 0; round < rounds; round += 1) await work(restored);
  };
  const payLater = async () => {
    await restored.verify(await restored.attempt(later, await fundBuyer(chain)));
    // The lane first finds that the lost database has used its nonce.
    await workFor(3);
  };
  return { payLater, chain, restored, merchantId, destination, paymentId, request, received, workFor };
}

const expectSettled = async (
  restored: MerchantFixture,
  { merchantId, asset }: { merchantId: string; asset: string },
) => {
  expect(await balanceOf(restored, `payable:${merchantId}`, asset)).toBe(0n);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
};

test.each([5n, 4n])(
  "a refund of %s that is requested after a restore is not drawn on money that a lost payout has paid to the merchant",
  async (units) => {
    const { chain, restored, merchantId, destination, paymentId, request, received, workFor, payLater } =
      await losePayout();
    const refundId = await request(units);
    expect(await restored.refund(refundId)).toEqual(["balance_short"]);
    // The payout is adopted although the refund waits, because nothing of it can be refunded.
    expect(await restored.settle((await restored.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await workFor(3);
    expect(await settlementsOf(restored, merchantId)).toMatchObject([{ amount: 5n * UNIT, state: "paid" }]);
    expect(await restored.refund(refundId)).toEqual(["balance_short"]);
    expect(await received()).toBe(0n);
    await payLater();
    expect(await restored.refund(refundId)).toEqual(["begun"]);
    await payOut(restored, merchantId);
    expect([await received(), await usdcBalance(chain, destination)]).toEqual([units * UNIT, (10n - units) * UNIT]);
    await expectSettled(restored, { merchantId, asset: chain.asset });
    await expectReconciled(restored, chain);
  },
);

test("a refund after a restore is drawn on the payouts that the chain does not show", async () => {
  const { chain, restored, merchantId, destination, request, received } = await losePayout({ others: [1_000n] });
  expect(await restored.refund(await request(5n))).toEqual(["begun"]);
  await payOut(restored, merchantId);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([
    { number: 1, amount: 5n * UNIT, state: "paid" },
    { number: 2, amount: 5n * UNIT, state: "paid" },
  ]);
  expect([await received(), await usdcBalance(chain, destination)]).toEqual([5n * UNIT, 10n * UNIT]);
  await expectSettled(restored, { merchantId, asset: chain.asset });
  await expectReconciled(restored, chain);
});

test("a lost payout of a part of a settlement is adopted although a refund waits for more than the other part", async () => {
  const chain = await startChain();
  const first = await makeMerchantFixture(chain);
  const { merchantId, destination } = first;
  const [early, buyer] = [await fundBuyer(chain), await fundBuyer(chain)];
  const settled = await first.pay(early, 500n);
  expect(await first.settle((await first.settlementOf(settled)).id)).toEqual(["begun"]);
  await work(first);
  const paymentId = await first.pay(buyer, 500n);
  const later = await first.create(500n);
  const had = [await usdcBalance(chain, early.address), await usdcBalance(chain, buyer.address)];
  const request = async (on: MerchantFixture, of: string, units: bigint) => {
    const amount = { unit: `caip19/${chain.asset}`, value: units * UNIT };
    return unwrap(await refundPayment(on.deps, { actor: testActor, paymentId: of, mode: "live", amount })).refundId;
  };
  const restored = await restoreDatabase(first, chain, async (lost) => {
    expect(await lost.refund(await request(lost, settled, 3n))).toEqual(["begun"]);
    expect(await lost.settle((await lost.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await lost.relay();
  });
  const refundId = await request(restored, paymentId, 5n);
  expect(await restored.refund(refundId)).toEqual(["balance_short"]);
  expect(await restored.settle((await restored.settlementOf(paymentId)).id)).toEqual(["begun"]);
  for (let round = 0; round < 3; round += 1) await work(restored);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([
    { amount: 5n * UNIT, state: "paid" },
    { amount: 2n * UNIT, state: "paid" },
    { amount: 3n * UNIT, state: "due" },
  ]);
  // The refund that the database has lost takes the other part, once it is requested again.
  expect(await restored.refund(await request(restored, settled, 3n))).toEqual(["begun"]);
  for (let round = 0; round < 3; round += 1) await work(restored);
  expect(await restored.refund(refundId)).toEqual(["balance_short"]);
  await restored.verify(await restored.attempt(later, await fundBuyer(chain)));
  for (let round = 0; round < 3; round += 1) await work(restored);
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  await payOut(restored, merchantId);
  const received = [await usdcBalance(chain, early.address), await usdcBalance(chain, buyer.address)];
  expect(received.map((amount, index) => amount - (had[index] ?? 0n))).toEqual([3n * UNIT, 5n * UNIT]);
  expect(await usdcBalance(chain, destination)).toBe(7n * UNIT);
  await expectSettled(restored, { merchantId, asset: chain.asset });
  await expectReconciled(restored, chain);
});
