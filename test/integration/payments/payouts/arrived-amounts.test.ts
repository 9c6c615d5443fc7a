import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { listPaymentViews } from "../../../../payments/lifecycle/list-payments.ts";
import { findPaymentDetail } from "../../../../payments/lifecycle/read-payment.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, fundBuyers, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { acceptOtherAssets, startQuotes } from "../../../support/quote-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { mintTestToken } from "../../../support/token-kinds.ts";
import { deliverAll, registerEndpoint, startWebhookEndpoint } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
const endpoint = await startWebhookEndpoint();
const UNIT = 1_000_000n;

async function makeMerchant() {
  const fixture = await makeMerchantFixture(chain);
  await registerEndpoint(fixture, endpoint.url);
  return fixture;
}
async function refund(fixture: MerchantFixture, paymentId: string, cents?: bigint) {
  const amount = cents === undefined ? undefined : { unit: "iso4217/USD", value: cents };
  const { refundId } = unwrap(
    await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: fixture.mode, amount }),
  );
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
}
async function settle(fixture: MerchantFixture, paymentId: string) {
  expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
}
/** Returns, per payment, the settled amount that the detail, the list and the webhook show. */
async function readArrived(fixture: MerchantFixture, paymentIds: readonly string[]) {
  await deliverAll(fixture);
  const { accountId, merchantId, mode } = fixture;
  const query = { accountId, mode, sortBy: "date", sortDir: "asc", limit: 50 } as const;
  const listed = unwrap(await listPaymentViews(fixture.deps, query)).items;
  return Promise.all(
    paymentIds.map(async (paymentId) => {
      const merchant = { accountId, merchantId };
      const detail = unwrap(await findPaymentDetail(fixture.deps, { paymentId, mode, merchant })).settlement?.amount
        .value;
      const list = listed.find((one) => one.paymentId === paymentId)?.settlement?.amount?.value;
      const settled = endpoint.of(paymentId).find(({ event }) => event.type === "payment.settled")?.event.data[
        "settled"
      ];
      return { detail, list, webhook: BigInt((settled as { amount: { value: string } }).amount.value) };
    }),
  );
}
const all = (value: bigint) => ({ detail: value, list: value, webhook: value });

test("a payment that is refunded in part before its payout settles the rest", async () => {
  const fixture = await makeMerchant();
  const paymentId = await fixture.pay(await fundBuyer(chain), 1_000n);
  await refund(fixture, paymentId, 400n);
  await settle(fixture, paymentId);
  expect(await usdcBalance(chain, fixture.destination)).toBe(6n * UNIT);
  expect(await readArrived(fixture, [paymentId])).toEqual([all(6n * UNIT)]);
  // A refund after the payout is deducted from the next payment and does not change the settled amount.
  const next = await fixture.pay(await fundBuyer(chain), 500n);
  await refund(fixture, paymentId, 100n);
  await settle(fixture, next);
  expect(await usdcBalance(chain, fixture.destination)).toBe(10n * UNIT);
  expect(await readArrived(fixture, [paymentId, next])).toEqual([all(6n * UNIT), all(4n * UNIT)]);
});

test("the settled amounts of the payments in one payout add up to the payout after refunds", async () => {
  const fixture = await makeMerchant();
  const before = await fixture.pay(await fundBuyer(chain), 300n);
  await settle(fixture, before);
  await accumulatePayouts(fixture, { ms: 60_000 });
  const ids = [];
  for (const buyer of await fundBuyers(chain, 3)) ids.push(await fixture.pay(buyer, 1_000n));
  const [first = "", second = "", third = ""] = ids;
  await refund(fixture, second, 400n);
  await refund(fixture, third);
  // This payment was paid out already, so its refund is deducted from the other payments.
  await refund(fixture, before);
  fixture.clock.advance(61_000);
  await fixture.watch();
  await settle(fixture, first);
  expect(await usdcBalance(chain, fixture.destination)).toBe(3n * UNIT + 13n * UNIT);
  const arrived = await readArrived(fixture, [before, ...ids]);
  expect(arrived).toEqual([all(3n * UNIT), all(7n * UNIT), all(6n * UNIT), all(0n)]);
});

test("a refund of a payment in another asset lowers its settlement amount, shown in the merchant's asset", async () => {
  const quotes = await startQuotes();
  const fixture = await quotes.makeMerchant([quotes.assets.usdc]);
  await acceptOtherAssets(fixture, quotes.assets.usdc, true);
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(quotes.chain, quotes.assets.permit, buyer.address);
  const paymentId = await fixture.pay(buyer, 1_000n);
  await refund(fixture, paymentId, 400n);
  const { accountId, mode } = fixture;
  const query = { accountId, mode, sortBy: "date", sortDir: "asc", limit: 1 } as const;
  const amount = { unit: `caip19/${quotes.assets.usdc}`, value: 6n * UNIT };
  expect(unwrap(await listPaymentViews(fixture.deps, query)).items[0]?.settlement).toMatchObject({
    settled: false,
    amount,
  });
});
