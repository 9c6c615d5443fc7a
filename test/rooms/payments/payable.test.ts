import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test } from "vitest";
import { newKey } from "../../../ops/local/networks-document.ts";
import { openCheckout } from "../../../payments/checkout.ts";
import { createPayment } from "../../../payments/create.ts";
import { listDestinations } from "../../../payments/destinations.ts";
import { takeOthers } from "../../../payments/payout-policies.ts";
import { simulatePayment } from "../../../payments/simulate.ts";
import { fundBuyer } from "../../support/chain.ts";
import { deployTestContract, testContract } from "../../support/collector.ts";
import { mintTestToken, startKinds } from "../../support/kinds.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const kinds = await startKinds();
const { chain, assets } = kinds;
const feed = await deployTestContract(chain.client, "Feed", "Feed");
const { abi } = testContract("Feed", "Feed");
const till = await makeTill(chain, { change: kinds.change, assets: [assets.usdc] });
const { databaseUrl } = till;
const testTill = await makeTill(chain, { mode: "test", change: kinds.change, assets: [assets.usdc], databaseUrl });
const pusher = await makeTill(chain, { mode: "test", change: kinds.change, assets: [assets.push], databaseUrl });
const source = { base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 3_600 };

const usePrices = (prices: object[]) => {
  for (const { deps } of [till, testTill]) Object.assign(deps, { networks: { ...deps.networks, prices } });
};
async function setPrice(price: bigint, ageSeconds = 0n): Promise<void> {
  const args = [price, BigInt(Math.floor(Date.now() / 1_000)) - ageSeconds];
  const hash = await chain.client.writeContract({ address: feed as Hex, abi, functionName: "set", args });
  await chain.client.waitForTransactionReceipt({ hash });
}
const euros = { unit: "iso4217/EUR", value: 1_000n };
const ways = async (of: Till, paymentId: string) =>
  good(await openCheckout(of.deps, paymentId)).ways.map(({ symbol }) => symbol);
const destinationOf = async ({ deps, accountId, merchantId, mode }: Till) => {
  const [first] = good(await listDestinations(deps, { accountId, merchantId, mode }));
  return { accountId, merchantId, mode, id: first?.id ?? "" };
};

beforeEach(async () => {
  usePrices([source]);
  await setPrice(108_000_000n);
});

describe("the buyer's page names what the options of a wallet offer:", () => {
  test("a payment in euros names the dollar asset that a wallet is offered at the price of the feed", async () => {
    const paymentId = await till.create(1n, { amount: euros });
    const [option] = await till.offer(paymentId, await fundBuyer(chain));
    expect(option?.amount).toMatchObject({ value: 10_800_000n, display: { assetSymbol: "USDC" } });
    expect(await ways(till, paymentId)).toEqual(["USDC"]);
  });

  test("a merchant whose destination takes other assets of its currency has those named too", async () => {
    const owner = await destinationOf(till);
    good(await takeOthers(till.deps, { ...owner, take: true }));
    const paymentId = await till.create();
    const buyer = privateKeyToAccount(newKey().privateKey);
    await mintTestToken(chain, assets.permit, buyer.address);
    const [option] = await till.offer(paymentId, buyer);
    expect(await ways(till, paymentId)).toContain(option?.amount.display.assetSymbol);
    good(await takeOthers(till.deps, { ...owner, take: false }));
    expect(await ways(till, paymentId)).toEqual(["USDC"]);
  });

  test("a test payment does not name an asset that its wallet would have to send itself", async () => {
    const paymentId = await pusher.create();
    expect(await pusher.offer(paymentId, { address: newKey().address })).toEqual([]);
    expect(await ways(pusher, paymentId)).toEqual([]);
  });

  test("a payment whose merchant has lost its destination names nothing", async () => {
    const paymentId = await till.create();
    await till.db.deleteFrom("settlement_destination").where("merchant_id", "=", till.merchantId).execute();
    expect(await ways(till, paymentId)).toEqual([]);
    good(await till.addDestination());
    expect(await ways(till, paymentId)).toEqual(["USDC"]);
  });

  test("a payment in euros whose price has become too old names nothing until there is a new one", async () => {
    const paymentId = await till.create(1n, { amount: euros });
    await setPrice(108_000_000n, 3_700n);
    expect(await ways(till, paymentId)).toEqual([]);
    await setPrice(109_000_000n);
    expect(await ways(till, paymentId)).toEqual(["USDC"]);
  });
});

describe("a payment that nothing can pay is refused when it is created, with the reason:", () => {
  const countPayments = async () => (await till.db.selectFrom("payment").select("id").execute()).length;
  const refusal = async (of: Till, amount: { unit: string; value: bigint }, reason: string) => {
    const { accountId, merchantId, mode } = of;
    const before = await countPayments();
    const made = await createPayment(of.deps, { caller: { accountId, mode }, merchantId, amount });
    expect(made).toEqual({ ok: false, code: "params_validation", message: expect.stringContaining(reason) });
    expect(await countPayments()).toBe(before);
  };

  test("a merchant without a settlement destination", async () => {
    const none = await makeTill(chain, { change: kinds.change, settles: false, databaseUrl });
    await refusal(
      none,
      { unit: "iso4217/USD", value: 100n },
      "amount: no asset can pay it, the merchant has no settlem",
    );
    good(await none.addDestination());
    await none.create();
  });

  test("a merchant that is paid only in an asset of no network here", async () => {
    const foreign = await makeTill(chain, { assets: [`eip155:5/erc20:0x${"77".repeat(20)}`], databaseUrl });
    await refusal(foreign, { unit: "iso4217/USD", value: 100n }, "no configured network has an asset");
  });

  test.each<[string, () => unknown]>([
    ["that no feed prices", () => usePrices([])],
    ["whose price is too old", () => setPrice(108_000_000n, 3_700n)],
  ])("a currency %s", async (_what, spoil) => {
    await spoil();
    const reason = "amount.unit: no price of iso4217/EUR is available in iso4217/USD";
    await refusal(till, euros, reason);
    await refusal(testTill, euros, reason);
  });

  test("an asset that no network here has, and one that the merchant is not paid in", async () => {
    await refusal(
      till,
      { unit: `caip19/${chain.id}/erc20:0x${"77".repeat(20)}`, value: 1n },
      "amount.unit: no configured network",
    );
    await refusal(till, { unit: `caip19/${assets.permit}`, value: 1n }, "amount.unit: the merchant has no settlement");
    await till.create(1n, { amount: { unit: `caip19/${assets.usdc}`, value: 1n } });
  });

  test("an amount beyond what any asset counts in", async () => {
    await refusal(till, { unit: "iso4217/USD", value: 10n ** 77n }, "amount.value: exceeds what any asset can pay");
  });
});

test("a test payment in euros can be driven to its success, at the price of the feed", async () => {
  const paymentId = await testTill.create(1n, { amount: euros });
  const status = good(await simulatePayment(testTill.deps, { paymentId, mode: "test" }, "succeeded"));
  expect(status.info?.optionAmount).toMatchObject({ value: 10_800_000n, display: { assetSymbol: "USDC" } });
});
