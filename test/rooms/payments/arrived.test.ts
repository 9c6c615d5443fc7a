import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../ops/local/networks-document.ts";
import { listDestinations } from "../../../payments/destinations.ts";
import { listPaymentViews } from "../../../payments/list.ts";
import { gatherPayouts } from "../../../payments/payout-policies.ts";
import { findPaymentDetail } from "../../../payments/read.ts";
import { refundPayment } from "../../../payments/refund.ts";
import { fundBuyer, fundBuyers, startChain, usdcBalance } from "../../support/chain.ts";
import { deliverAll, register, startEndpoint } from "../../support/endpoint.ts";
import { mintTestToken } from "../../support/kinds.ts";
import { setTakesOthers, startQuotes } from "../../support/quotes.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();
const endpoint = await startEndpoint();
const UNIT = 1_000_000n;

async function makeMerchant() {
  const till = await makeTill(chain);
  await register(till, endpoint.url);
  return till;
}
async function refund(till: Till, paymentId: string, cents?: bigint) {
  const amount = cents === undefined ? undefined : { unit: "iso4217/USD", value: cents };
  const { refundId } = good(await refundPayment(till.deps, { paymentId, mode: till.mode, amount }));
  expect(await till.refund(refundId)).toEqual(["begun"]);
  await till.relay();
  await till.watch();
}
async function settle(till: Till, paymentId: string) {
  expect(await till.settle((await till.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await till.relay();
  await till.watch();
}
/** Returns, per payment, the settled amount that the detail, the list and the webhook show. */
async function readArrived(till: Till, paymentIds: readonly string[]) {
  await deliverAll(till);
  const { accountId, merchantId, mode } = till;
  const asked = { accountId, mode, sortBy: "date", sortDir: "asc", limit: 50 } as const;
  const listed = good(await listPaymentViews(till.deps, asked)).items;
  return Promise.all(
    paymentIds.map(async (paymentId) => {
      const merchant = { accountId, merchantId };
      const detail = good(await findPaymentDetail(till.deps, { paymentId, mode, merchant })).settlement?.amount.value;
      const list = listed.find((one) => one.paymentId === paymentId)?.settlement?.amount?.value;
      const settled = endpoint.of(paymentId).find(({ event }) => event.type === "payment.settled")?.event.data.settled;
      return { detail, list, webhook: BigInt((settled as { amount: { value: string } }).amount.value) };
    }),
  );
}
const all = (value: bigint) => ({ detail: value, list: value, webhook: value });

test("a payment that is refunded in part before its payout settles the rest", async () => {
  const till = await makeMerchant();
  const paymentId = await till.pay(await fundBuyer(chain), 1_000n);
  await refund(till, paymentId, 400n);
  await settle(till, paymentId);
  expect(await usdcBalance(chain, till.destination)).toBe(6n * UNIT);
  expect(await readArrived(till, [paymentId])).toEqual([all(6n * UNIT)]);
  // A refund after the payout is deducted from the next payment and does not change the settled amount.
  const next = await till.pay(await fundBuyer(chain), 500n);
  await refund(till, paymentId, 100n);
  await settle(till, next);
  expect(await usdcBalance(chain, till.destination)).toBe(10n * UNIT);
  expect(await readArrived(till, [paymentId, next])).toEqual([all(6n * UNIT), all(4n * UNIT)]);
});

test("the settled amounts of the payments in one payout add up to the payout after refunds", async () => {
  const till = await makeMerchant();
  const { accountId, merchantId, mode } = till;
  const owner = { accountId, merchantId, mode };
  const before = await till.pay(await fundBuyer(chain), 300n);
  await settle(till, before);
  const [destination] = good(await listDestinations(till.deps, owner));
  good(await gatherPayouts(till.deps, { ...owner, id: destination?.id ?? "", gather: { ms: 60_000 } }));
  const ids = [];
  for (const buyer of await fundBuyers(chain, 3)) ids.push(await till.pay(buyer, 1_000n));
  const [first = "", second = "", third = ""] = ids;
  await refund(till, second, 400n);
  await refund(till, third);
  // This payment was paid out already, so its refund is deducted from the other payments.
  await refund(till, before);
  till.clock.advance(61_000);
  await till.watch();
  await settle(till, first);
  expect(await usdcBalance(chain, till.destination)).toBe(3n * UNIT + 13n * UNIT);
  const arrived = await readArrived(till, [before, ...ids]);
  expect(arrived).toEqual([all(3n * UNIT), all(7n * UNIT), all(6n * UNIT), all(0n)]);
});

test("a refund of a payment in another asset lowers its settlement amount, shown in the merchant's asset", async () => {
  const quotes = await startQuotes();
  const till = await quotes.makeMerchant([quotes.assets.usdc]);
  await setTakesOthers(till, quotes.assets.usdc, true);
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(quotes.chain, quotes.assets.permit, buyer.address);
  const paymentId = await till.pay(buyer, 1_000n);
  await refund(till, paymentId, 400n);
  const { accountId, mode } = till;
  const asked = { accountId, mode, sortBy: "date", sortDir: "asc", limit: 1 } as const;
  const amount = { unit: `caip19/${quotes.assets.usdc}`, value: 6n * UNIT };
  expect(good(await listPaymentViews(till.deps, asked)).items[0]?.settlement).toMatchObject({ settled: false, amount });
});
