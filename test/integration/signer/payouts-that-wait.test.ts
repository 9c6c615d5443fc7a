import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { listDestinations } from "../../../payments/merchants/destinations.ts";
import { setFee } from "../../../payments/merchants/fee-policies.ts";
import { setAcceptsOtherAssets } from "../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { withdrawRefund } from "../../../payments/payouts/withdraw-refunds.ts";
import { fundBuyer } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";
import { mintTestToken, startTokenKinds } from "../../support/token-kinds.ts";

// The signer counts what it has signed for ever, so a payout that waits for money must not reach it.

const kinds = await startTokenKinds();
const { chain, assets } = kinds;
const DOLLAR = 1_000_000n;

async function makeShop() {
  const signing = await startTestSigner(chain, { change: kinds.change });
  const options = { change: kinds.change, assets: [assets.usdc], signer: signing.signer };
  const fixture = await makeMerchantFixture(chain, options);
  const settle = async (paymentId: string) => {
    const [outcome] = await fixture.settle((await fixture.settlementOf(paymentId)).id);
    await fixture.relay();
    await fixture.watch();
    return outcome;
  };
  const requestRefund = async (paymentId: string, cents: bigint) => {
    const amount = { unit: "iso4217/USD", value: cents };
    const asked = await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: fixture.mode, amount });
    return unwrap(asked).refundId;
  };
  const payouts = () => signing.payouts().map(({ kind, amount }) => [kind, BigInt(String(amount))]);
  return { ...fixture, signing, settle, settleById: fixture.settle, requestRefund, payouts };
}

test("a refund that waited for its merchant's balance and was withdrawn takes nothing from the merchant's payouts", async () => {
  const { deps, accountId, merchantId, ...shop } = await makeShop();
  await setFee(deps, { actor: testActor, accountId, merchantId, basisPoints: 100, fixedMicros: 0n });
  const settled = await shop.pay(await fundBuyer(chain), 100n);
  expect(await shop.settle(settled)).toBe("begun");
  const open = await shop.pay(await fundBuyer(chain), 100n);
  const refundId = await shop.requestRefund(settled, 100n);
  expect(await shop.refund(refundId)).toEqual(["balance_short"]);
  unwrap(await withdrawRefund(deps, { actor: testActor, refundId }));
  expect(await shop.settle(open)).toBe("begun");
  expect(shop.payouts()).toEqual([
    ["settlement", 990_000n],
    ["settlement", 990_000n],
  ]);
});

test("the signer is asked only for the refunds that their merchant's balance covers together", async () => {
  const shop = await makeShop();
  const settled = await shop.pay(await fundBuyer(chain), 300n);
  expect(await shop.settle(settled)).toBe("begun");
  await shop.pay(await fundBuyer(chain), 200n);
  const refunds = [await shop.requestRefund(settled, 150n), await shop.requestRefund(settled, 100n)];
  expect(await shop.refund(...refunds)).toEqual(["begun", "balance_short"]);
  expect(shop.payouts()).toEqual([
    ["settlement", 3n * DOLLAR],
    ["refund", 1_500_000n],
  ]);
});

test("a refund that the signer refuses does not keep back a smaller one behind it", async () => {
  const shop = await makeShop();
  const settled = await shop.pay(await fundBuyer(chain), 300n);
  expect(await shop.settle(settled)).toBe("begun");
  await shop.pay(await fundBuyer(chain), 200n);
  const refunds = [await shop.requestRefund(settled, 150n), await shop.requestRefund(settled, 100n)];
  await shop.signing.setLimits({ asset: { perPayout: "1000000" } });
  expect(await shop.refund(...refunds)).toEqual(["limit_payout", "begun"]);
});

test("the signer is not asked for a converted payout that waits for inventory", async () => {
  const shop = await makeShop();
  const owner = { accountId: shop.accountId, merchantId: shop.merchantId, mode: shop.mode };
  const [{ id } = { id: "" }] = unwrap(await listDestinations(shop.deps, owner));
  unwrap(await setAcceptsOtherAssets(shop.deps, { actor: testActor, ...owner, id, accept: true }));
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.permit, buyer.address);
  const settlement = await shop.settlementOf(await shop.pay(buyer, 200n));
  expect(settlement.converted).toBe(true);
  expect(await shop.settleById(settlement.id)).toEqual(["inventory_short"]);
  expect(shop.payouts()).toEqual([]);
});
