import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { openCheckout } from "../../../../payments/lifecycle/checkout-view.ts";
import { simulatePayment } from "../../../../payments/lifecycle/simulate-payment.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { createPayment } from "../../../support/create-payment.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import { mintTestToken, startTokenKinds } from "../../../support/token-kinds.ts";

const kinds = await startTokenKinds();
const { chain, assets } = kinds;
const feed = await deployTestContract(chain.client, "Feed", "Feed");
const { abi } = testContract("Feed", "Feed");
const fixture = await makeMerchantFixture(chain, { change: kinds.change, assets: [assets.usdc] });
const { databaseUrl } = fixture;
const testMode = await makeMerchantFixture(chain, {
  mode: "test",
  change: kinds.change,
  assets: [assets.usdc],
  databaseUrl,
});
const pusher = await makeMerchantFixture(chain, {
  mode: "test",
  change: kinds.change,
  assets: [assets.push],
  databaseUrl,
});
const source = { base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 3_600 };

const usePrices = (prices: object[]) => {
  for (const { deps } of [fixture, testMode]) Object.assign(deps, { networks: { ...deps.networks, prices } });
};
async function setPrice(price: bigint, ageSeconds = 0n): Promise<void> {
  const args = [price, BigInt(Math.floor(Date.now() / 1_000)) - ageSeconds];
  const hash = await chain.client.writeContract({ address: feed as Hex, abi, functionName: "set", args });
  await chain.client.waitForTransactionReceipt({ hash });
  // A price is kept for five seconds.
  for (const { clock } of [fixture, testMode]) clock.advance(5_000);
}
const euros = { unit: "iso4217/EUR", value: 1_000n };
const ways = async (of: MerchantFixture, paymentId: string) =>
  unwrap(await openCheckout(of.deps, paymentId)).ways.map(({ symbol }) => symbol);
const destinationOf = async ({ deps, accountId, merchantId, mode }: MerchantFixture) => {
  const [first] = unwrap(await listDestinations(deps, { accountId, merchantId, mode }));
  return { accountId, merchantId, mode, id: first?.id ?? "" };
};

beforeEach(async () => {
  usePrices([source]);
  await setPrice(108_000_000n);
});

describe("the assets that the checkout page names", () => {
  test("the page of a payment in euros names the dollar asset that its options offer at the feed's price", async () => {
    const paymentId = await fixture.create(1n, { amount: euros });
    const [option] = await fixture.offer(paymentId, await fundBuyer(chain));
    expect(option?.amount).toMatchObject({ value: 10_800_000n, display: { assetSymbol: "USDC" } });
    expect(await ways(fixture, paymentId)).toEqual(["USDC"]);
  });

  test("the page names other assets of the currency if the merchant's destination takes them", async () => {
    const owner = await destinationOf(fixture);
    unwrap(await setAcceptsOtherAssets(fixture.deps, { actor: testActor, ...owner, accept: true }));
    const paymentId = await fixture.create();
    const buyer = privateKeyToAccount(newKey().privateKey);
    await mintTestToken(chain, assets.permit, buyer.address);
    const [option] = await fixture.offer(paymentId, buyer);
    expect(await ways(fixture, paymentId)).toContain(option?.amount.display.assetSymbol);
    unwrap(await setAcceptsOtherAssets(fixture.deps, { actor: testActor, ...owner, accept: false }));
    expect(await ways(fixture, paymentId)).toEqual(["USDC"]);
  });

  test("the page of a test payment does not name an asset that the wallet would have to push", async () => {
    const paymentId = await pusher.create();
    expect(await pusher.offer(paymentId, { address: newKey().address })).toEqual([]);
    expect(await ways(pusher, paymentId)).toEqual([]);
  });

  test("the page of a payment whose merchant lost its destination names no asset", async () => {
    const paymentId = await fixture.create();
    await fixture.db.deleteFrom("settlement_destination").where("merchant_id", "=", fixture.merchantId).execute();
    expect(await ways(fixture, paymentId)).toEqual([]);
    unwrap(await fixture.addDestination());
    expect(await ways(fixture, paymentId)).toEqual(["USDC"]);
  });

  test("the page of a payment in euros names no asset while the price is too old", async () => {
    const paymentId = await fixture.create(1n, { amount: euros });
    await setPrice(108_000_000n, 3_700n);
    expect(await ways(fixture, paymentId)).toEqual([]);
    await setPrice(109_000_000n);
    expect(await ways(fixture, paymentId)).toEqual(["USDC"]);
  });
});

describe("an unpayable payment is refused at creation", () => {
  const countPayments = async () => (await fixture.db.selectFrom("payment").select("id").execute()).length;
  const expectRefused = async (of: MerchantFixture, amount: { unit: string; value: bigint }, reason: string) => {
    const { accountId, merchantId, mode } = of;
    const before = await countPayments();
    const made = await createPayment(of.deps, { caller: { accountId, mode }, merchantId, amount });
    expect(made).toEqual({ ok: false, code: "params_validation", message: expect.stringContaining(reason) });
    expect(await countPayments()).toBe(before);
  };

  test("a merchant without a settlement destination cannot create a payment", async () => {
    const none = await makeMerchantFixture(chain, { change: kinds.change, settles: false, databaseUrl });
    await expectRefused(
      none,
      { unit: "iso4217/USD", value: 100n },
      "amount: no asset can pay it, the merchant has no settlem",
    );
    unwrap(await none.addDestination());
    await none.create();
  });

  test("a merchant whose only asset belongs to no configured network cannot create a payment", async () => {
    const foreign = await makeMerchantFixture(chain, { assets: [`eip155:5/erc20:0x${"77".repeat(20)}`], databaseUrl });
    await expectRefused(foreign, { unit: "iso4217/USD", value: 100n }, "no configured network has an asset");
  });

  test.each<[string, () => unknown]>([
    ["that no feed prices", () => usePrices([])],
    ["whose price is too old", () => setPrice(108_000_000n, 3_700n)],
  ])("a payment in a currency %s is refused", async (_what, spoil) => {
    await spoil();
    const reason = "amount.unit: this currency has no price in iso4217/USD, which the merchant is paid in";
    await expectRefused(fixture, euros, reason);
    await expectRefused(testMode, euros, reason);
  });

  test("a payment in an unknown asset, or in one that the merchant does not settle, is refused", async () => {
    await expectRefused(
      fixture,
      { unit: `caip19/${chain.id}/erc20:0x${"77".repeat(20)}`, value: 1n },
      "amount.unit: no configured network",
    );
    await expectRefused(
      fixture,
      { unit: `caip19/${assets.permit}`, value: 1n },
      "amount.unit: the merchant has no settlement",
    );
    await fixture.create(1n, { amount: { unit: `caip19/${assets.usdc}`, value: 1n } });
  });

  test("an amount larger than any asset can represent is refused", async () => {
    await expectRefused(
      fixture,
      { unit: "iso4217/USD", value: 10n ** 77n },
      "amount.value: exceeds what any asset can pay",
    );
  });
});

test("a test payment in euros can be simulated to success at the feed's price", async () => {
  const paymentId = await testMode.create(1n, { amount: euros });
  const status = unwrap(await simulatePayment(testMode.deps, { paymentId, mode: "test" }, "succeeded"));
  expect(status.info?.optionAmount).toMatchObject({ value: 10_800_000n, display: { assetSymbol: "USDC" } });
});
