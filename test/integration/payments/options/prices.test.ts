import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, signOption } from "../../../support/merchant-fixture.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";

const chain = await startChain();
const feed = await deployTestContract(chain.client, "Feed", "Feed");
const fixture = await makeMerchantFixture(chain);
const source = { base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 3_600 };
const usePrices = (prices: object[]) => Object.assign(fixture.deps, { networks: { ...fixture.deps.networks, prices } });
usePrices([source]);
const { abi } = testContract("Feed", "Feed");
const now = () => BigInt(Math.floor(Date.now() / 1_000));
async function callFeed(functionName: "set" | "describe", ...args: unknown[]): Promise<void> {
  const hash = await chain.client.writeContract({ address: feed as Hex, abi, functionName, args });
  await chain.client.waitForTransactionReceipt({ hash });
  // A price is kept for five seconds.
  fixture.clock.advance(5_000);
}
const euros = (value: bigint) => fixture.create(1n, { amount: { unit: "iso4217/EUR", value } });
const QUOTE_LIFETIME_MS = 120_000;

describe("a payment in a currency other than its asset's", () => {
  test("a payment in euros is paid at the feed's price, rounded up, and the merchant receives the whole amount", async () => {
    await callFeed("set", 108_512_345n, now());
    const paymentId = await euros(1_001n);
    const buyer = await fundBuyer(chain);
    const [option] = await fixture.offer(paymentId, buyer);
    // 10.01 euros are 10.8620857345 dollars.
    expect(option?.amount.value).toBe(10_862_086n);
    const leftMs = (option?.expiresAt?.getTime() ?? 0) - fixture.deps.now().getTime();
    expect(leftMs).toBeGreaterThan(QUOTE_LIFETIME_MS - 10_000);
    expect(leftMs).toBeLessThanOrEqual(QUOTE_LIFETIME_MS);
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    await fixture.relay();
    await fixture.watch();
    expect(await fixture.status(paymentId)).toMatchObject({
      state: "succeeded",
      info: { optionAmount: { value: 10_862_086n } },
    });
    expect((await fixture.settlementOf(paymentId)).amount).toBe(10_862_086n);
    const row = await fixture.db
      .selectFrom("payment_option")
      .select("rate")
      .where("payment_id", "=", paymentId)
      .executeTakeFirst();
    expect(row?.rate).toContain("EUR / USD 108512345 / 10^8 at ");
  });

  test("a quote is kept until it expires, then replaced, and an expired quote is refused", async () => {
    await callFeed("set", 100_000_000n, now());
    const paymentId = await euros(1_000n);
    const buyer = await fundBuyer(chain);
    const [first] = await fixture.offer(paymentId, buyer);
    await callFeed("set", 120_000_000n, now());
    const [same] = await fixture.offer(paymentId, buyer);
    expect(same).toMatchObject({ id: first?.id, amount: { value: 10_000_000n }, expiresAt: first?.expiresAt });
    fixture.clock.advance(QUOTE_LIFETIME_MS + 1_000);
    if (!first) throw new Error("there is no way to pay");
    const signed = await signOption(first, buyer);
    expect(await fixture.confirm(paymentId, first.id, signed)).toMatchObject({ ok: false, code: "quote_expired" });
    const [second] = await fixture.offer(paymentId, buyer);
    expect(second?.amount.value).toBe(12_000_000n);
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    await fixture.relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).info?.optionAmount.value).toBe(12_000_000n);
    fixture.clock.advance(-QUOTE_LIFETIME_MS - 1_000);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["is old", () => callFeed("set", 100_000_000n, now() - 3_700n)],
    ["is zero", () => callFeed("set", 0n, now())],
    ["is negative", () => callFeed("set", -1n, now())],
    ["has a timestamp in the future", () => callFeed("set", 100_000_000n, now() + 3_600n)],
    ["belongs to another pair", () => callFeed("describe", "GBP / USD")],
    ["comes from a contract that is not a feed", async () => usePrices([{ ...source, feed: chain.contracts.token }])],
    ["comes from an address without code", async () => usePrices([{ ...source, feed: `0x${"99".repeat(20)}` }])],
    ["has no source in the networks file", async () => usePrices([])],
  ])("a payment in euros has no options when the price %s", async (_how, spoil) => {
    const paymentId = await euros(1_000n);
    await spoil();
    expect(await fixture.offer(paymentId, await fundBuyer(chain))).toEqual([]);
    usePrices([source]);
    await callFeed("describe", "EUR / USD");
    await callFeed("set", 100_000_000n, now());
    expect(await fixture.offer(await euros(1_000n), await fundBuyer(chain))).toHaveLength(1);
  });

  describe("a rollup's price", async () => {
    const sequencer = await deployTestContract(chain.client, "Feed", "Sequencer");
    const graceSeconds = 3_600;
    const setUptime = async (answer: bigint, startedAt: bigint) => {
      const { abi } = testContract("Feed", "Sequencer");
      const args = [answer, startedAt];
      const hash = await chain.client.writeContract({ address: sequencer, abi, functionName: "set", args });
      await chain.client.waitForTransactionReceipt({ hash });
      fixture.clock.advance(5_000);
    };
    const countOptions = async (id: string) => (await fixture.offer(id, await fundBuyer(chain))).length;

    test.each<[string, bigint, () => bigint, number]>([
      ["has been up for longer than the grace period", 0n, () => now() - 3_700n, 1],
      ["came up a moment ago", 0n, () => now() - 3_000n, 0],
      ["is down", 1n, () => now() - 100_000n, 0],
      ["has never reported", 0n, () => 0n, 0],
    ])(
      "the options at a fresh price on a rollup whose sequencer %s number as expected",
      async (_how, answer, startedAt, options) => {
        await callFeed("set", 100_000_000n, now());
        const id = await euros(1_000n);
        usePrices([{ ...source, sequencer: { feed: sequencer, graceSeconds } }]);
        await setUptime(answer, startedAt());
        expect(await countOptions(id)).toBe(options);
        usePrices([source]);
      },
    );

    test("a rollup whose uptime feed is not a contract offers no options", async () => {
      await callFeed("set", 100_000_000n, now());
      const id = await euros(1_000n);
      usePrices([{ ...source, sequencer: { feed: `0x${"99".repeat(20)}`, graceSeconds } }]);
      expect(await countOptions(id)).toBe(0);
      usePrices([source]);
    });
  });

  test("a payment in the asset's own currency needs no price, and its option lives as long as the payment", async () => {
    usePrices([{ ...source, feed: `0x${"99".repeat(20)}` }]);
    const [option] = await fixture.offer(await fixture.create(100n), await fundBuyer(chain));
    expect(option).toMatchObject({ amount: { value: 1_000_000n }, expiresAt: null });
    usePrices([source]);
  });
});

test.each([
  ["a chain that the file does not configure", { chain: "eip155:5" }, /prices\.0\.chain/],
  ["one currency twice", { quote: "iso4217/EUR" }, /prices\.0/],
  ["a malformed currency", { base: "EUR" }, /prices\.0\.base/],
  ["a maximum age of zero", { maxAgeSeconds: 0 }, /prices\.0\.maxAgeSeconds/],
])("a networks file whose price names %s is refused", (_what, change, message) => {
  const { deployment, chains } = fixture.deps.networks;
  const document = JSON.parse(
    JSON.stringify({ deployment, chains, prices: [{ ...source, ...change }] }, (_name, value) =>
      typeof value === "bigint" ? value.toString() : value,
    ),
  );
  expect(() => parseNetworks(document)).toThrow(message);
});
