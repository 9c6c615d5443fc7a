import { beforeEach, describe, expect, test } from "vitest";
import { openCheckout } from "../../../../payments/lifecycle/checkout-view.ts";
import { simulatePayment } from "../../../../payments/lifecycle/simulate-payment.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import { mintTestToken, startTokenKinds } from "../../../support/token-kinds.ts";

const kinds = await startTokenKinds();
const { chain, assets } = kinds;
// The feed is on another chain than the assets, whose endpoint fails alone.
const feedChain = await startChain({ chainId: 31_338 });
const feed = await deployTestContract(feedChain.client, "Feed", "Feed");
const proxy = await startFaultProxy({ target: feedChain.url });
const entries = (kinds.change["assets"] as { asset: string }[]).map((entry) =>
  entry.asset === assets.permit ? { ...entry, peg: "iso4217/EUR", symbol: "EURC" } : entry,
);
const settings = {
  change: { ...kinds.change, assets: entries },
  // The endpoint's own timeout is longer than a test may take.
  also: [{ chain: feedChain, rpcUrls: [proxy.url], change: { rpcTimeoutMs: 600_000 } }],
};
const source = { base: "iso4217/EUR", quote: "iso4217/USD", chain: feedChain.id, feed, maxAgeSeconds: 86_400 };
const priced = async (options: Parameters<typeof makeMerchantFixture>[1]) => {
  const fixture = await makeMerchantFixture(chain, { ...settings, ...options });
  Object.assign(fixture.deps, { networks: { ...fixture.deps.networks, prices: [source] } });
  return fixture;
};
const dollars = await priced({ assets: [assets.usdc] });
const both = await priced({ assets: [assets.usdc, assets.permit], databaseUrl: dollars.databaseUrl });
const testMode = await priced({ assets: [assets.usdc], databaseUrl: dollars.databaseUrl, mode: "test" });
const fixtures = [dollars, both, testMode];

const euros = (of: MerchantFixture) => of.create(1n, { amount: { unit: "iso4217/EUR", value: 1_000n } });
const symbolsOf = (options: readonly { amount: { display: { assetSymbol: string } } }[]) =>
  options.map(({ amount }) => amount.display.assetSymbol);
/** Lets every price that was read become too old to be used. */
const forgetPrices = () => {
  for (const { clock } of fixtures) clock.advance(5_000);
};
const outage = { code: "rpc_unreachable", transient: true };

beforeEach(async () => {
  proxy.refuse(false);
  proxy.hold(undefined);
  forgetPrices();
  const args = [108_000_000n, BigInt(Math.floor(Date.now() / 1_000))];
  const hash = await feedChain.client.writeContract({
    address: feed,
    abi: testContract("Feed", "Feed").abi,
    functionName: "set",
    args,
  });
  await feedChain.client.waitForTransactionReceipt({ hash });
});

describe("while the chain of a price does not respond", () => {
  test("creation and options of a payment that needs the price fail with the chain's transient error", async () => {
    const paymentId = await euros(dollars);
    const testPaymentId = await euros(testMode);
    proxy.refuse(true);
    forgetPrices();
    await expect(euros(dollars)).rejects.toMatchObject(outage);
    await expect(dollars.offer(paymentId, await fundBuyer(chain))).rejects.toMatchObject(outage);
    const simulated = simulatePayment(testMode.deps, { paymentId: testPaymentId, mode: "test" }, "succeeded");
    await expect(simulated).rejects.toMatchObject(outage);
    proxy.refuse(false);
    forgetPrices();
    expect(symbolsOf(await dollars.offer(paymentId, await fundBuyer(chain)))).toEqual(["USDC"]);
    await euros(dollars);
  });

  test("a merchant paid in euros and dollars gets payments and offers the euro asset", async () => {
    proxy.hold(() => new Promise(() => undefined));
    const paymentId = await euros(both);
    const buyer = await fundBuyer(chain);
    await mintTestToken(chain, assets.permit, buyer.address);
    forgetPrices();
    expect(symbolsOf(await both.offer(paymentId, buyer))).toEqual(["EURC"]);
    // This account may be able to pay in dollars once there is a price.
    await expect(both.offer(paymentId, await fundBuyer(chain))).rejects.toMatchObject(outage);
  });

  test("a quote is offered until it expires", async () => {
    const paymentId = await euros(both);
    const buyer = await fundBuyer(chain);
    const [quote] = await both.offer(paymentId, buyer);
    proxy.refuse(true);
    forgetPrices();
    const [same] = await both.offer(paymentId, buyer);
    expect(same).toMatchObject({ id: quote?.id, amount: { value: 10_800_000n }, expiresAt: quote?.expiresAt });
    both.clock.advance(120_000);
    await expect(both.offer(paymentId, buyer)).rejects.toMatchObject(outage);
  });

  test("the checkout page names the asset, because it can pay once the outage ends", async () => {
    const paymentId = await euros(dollars);
    proxy.refuse(true);
    forgetPrices();
    const { ways, view } = unwrap(await openCheckout(dollars.deps, paymentId));
    expect(ways.map(({ symbol }) => symbol)).toEqual(["USDC"]);
    expect(view.money).toBe("none");
  });
});

test.each([
  ["responds", false],
  ["resets connections", true],
])("any number of page views read a price once in five seconds while its chain %s", async (_what, refuses) => {
  const paymentId = await euros(dollars);
  const resume = dollars.clock.stop();
  proxy.refuse(refuses);
  const callsOf = async (views: number) => {
    const before = proxy.calls["eth_call"] ?? 0;
    await Promise.all(Array.from({ length: views }, () => openCheckout(dollars.deps, paymentId)));
    await openCheckout(dollars.deps, paymentId);
    return (proxy.calls["eth_call"] ?? 0) - before;
  };
  dollars.clock.advance(5_000);
  const once = await callsOf(1);
  expect(once).toBeGreaterThan(0);
  dollars.clock.advance(4_999);
  expect(await callsOf(20)).toBe(0);
  dollars.clock.advance(1);
  expect(await callsOf(20)).toBe(once);
  resume();
});

test("a payment whose quote is valid is verified, and money that pays it is booked, while the price cannot be read", async () => {
  const [confirming, relayed] = [await fundBuyer(chain), await fundBuyer(chain)];
  const confirmed = await euros(dollars);
  const attemptId = await dollars.attempt(confirmed, confirming);
  const pushed = await signUnconfirmed(dollars, {
    chain,
    buyer: relayed,
    cents: 1n,
    more: { amount: { unit: "iso4217/EUR", value: 1_000n } },
  });
  proxy.refuse(true);
  for (const { clock } of fixtures) clock.advance(60_000);
  await dollars.verify(attemptId);
  expect(await dollars.verificationResult(attemptId)).toBe("verified");
  await pushed.relay();
  await dollars.relay();
  await dollars.watch();
  for (const id of [confirmed, pushed.paymentId])
    expect(await dollars.status(id)).toMatchObject({ state: "succeeded" });
});
