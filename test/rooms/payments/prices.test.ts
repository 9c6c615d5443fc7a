import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { parseNetworks } from "../../../ops/networks.ts";
import { fundBuyer, startChain } from "../../support/chain.ts";
import { deployTestContract, testContract } from "../../support/collector.ts";
import { makeTill, signOption } from "../../support/till.ts";

const chain = await startChain();
const feed = await deployTestContract(chain.client, "Feed", "Feed");
const till = await makeTill(chain);
const source = { base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 3_600 };
const usePrices = (prices: object[]) => Object.assign(till.deps, { networks: { ...till.deps.networks, prices } });
usePrices([source]);
const { abi } = testContract("Feed", "Feed");
const now = () => BigInt(Math.floor(Date.now() / 1_000));
async function tell(functionName: "set" | "describe", ...args: unknown[]): Promise<void> {
  const hash = await chain.client.writeContract({ address: feed as Hex, abi, functionName, args });
  await chain.client.waitForTransactionReceipt({ hash });
}
const euros = (value: bigint) => till.create(1n, { amount: { unit: "iso4217/EUR", value } });
const QUOTE_MS = 120_000;

describe("a payment in another currency than its asset's", () => {
  test("is paid at the price of the feed, rounded up, and the merchant has it all", async () => {
    await tell("set", 108_512_345n, now());
    const paymentId = await euros(1_001n);
    const buyer = await fundBuyer(chain);
    const [option] = await till.offer(paymentId, buyer);
    // 10.01 euros are 10.8620857345 dollars.
    expect(option?.amount.value).toBe(10_862_086n);
    const leftMs = (option?.expiresAt?.getTime() ?? 0) - till.deps.now().getTime();
    expect(leftMs).toBeGreaterThan(QUOTE_MS - 10_000);
    expect(leftMs).toBeLessThanOrEqual(QUOTE_MS);
    await till.verify(await till.attempt(paymentId, buyer));
    await till.relay();
    await till.watch();
    expect(await till.status(paymentId)).toMatchObject({
      state: "succeeded",
      info: { optionAmount: { value: 10_862_086n } },
    });
    expect((await till.settlementOf(paymentId)).amount).toBe(10_862_086n);
    const row = await till.db
      .selectFrom("payment_option")
      .select("rate")
      .where("payment_id", "=", paymentId)
      .executeTakeFirst();
    expect(row?.rate).toContain("EUR / USD 108512345 / 10^8 at ");
  });

  test("keeps its quote while that holds, and has a new one afterwards; the old one is not taken any more", async () => {
    await tell("set", 100_000_000n, now());
    const paymentId = await euros(1_000n);
    const buyer = await fundBuyer(chain);
    const [first] = await till.offer(paymentId, buyer);
    await tell("set", 120_000_000n, now());
    const [same] = await till.offer(paymentId, buyer);
    expect(same).toMatchObject({ id: first?.id, amount: { value: 10_000_000n }, expiresAt: first?.expiresAt });
    till.clock.advance(QUOTE_MS + 1_000);
    if (!first) throw new Error("there is no way to pay");
    const signed = await signOption(first, buyer);
    expect(await till.confirm(paymentId, first.id, signed)).toMatchObject({ ok: false, code: "quote_expired" });
    const [second] = await till.offer(paymentId, buyer);
    expect(second?.amount.value).toBe(12_000_000n);
    await till.verify(await till.attempt(paymentId, buyer));
    await till.relay();
    await till.watch();
    expect((await till.status(paymentId)).info?.optionAmount.value).toBe(12_000_000n);
    till.clock.advance(-QUOTE_MS - 1_000);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["is old", () => tell("set", 100_000_000n, now() - 3_700n)],
    ["is zero", () => tell("set", 0n, now())],
    ["is negative", () => tell("set", -1n, now())],
    ["has a timestamp in the future", () => tell("set", 100_000_000n, now() + 3_600n)],
    ["is another pair's", () => tell("describe", "GBP / USD")],
    ["is asked of a contract that has none", async () => usePrices([{ ...source, feed: chain.contracts.token }])],
    ["is asked of nobody", async () => usePrices([{ ...source, feed: `0x${"99".repeat(20)}` }])],
    ["is not in the networks file", async () => usePrices([])],
  ])("cannot be paid when the price %s: no option is better than a wrong one", async (_how, spoil) => {
    const paymentId = await euros(1_000n);
    await spoil();
    expect(await till.offer(paymentId, await fundBuyer(chain))).toEqual([]);
    usePrices([source]);
    await tell("describe", "EUR / USD");
    await tell("set", 100_000_000n, now());
    expect(await till.offer(await euros(1_000n), await fundBuyer(chain))).toHaveLength(1);
  });

  describe("on a rollup", async () => {
    const sequencer = await deployTestContract(chain.client, "Feed", "Sequencer");
    const graceSeconds = 3_600;
    const tellUptime = async (answer: bigint, startedAt: bigint) => {
      const { abi } = testContract("Feed", "Sequencer");
      const args = [answer, startedAt];
      const hash = await chain.client.writeContract({ address: sequencer, abi, functionName: "set", args });
      await chain.client.waitForTransactionReceipt({ hash });
    };
    const countOptions = async (id: string) => (await till.offer(id, await fundBuyer(chain))).length;

    test.each<[string, bigint, () => bigint, number]>([
      ["has been up for longer than the grace period", 0n, () => now() - 3_700n, 1],
      ["came up a moment ago", 0n, () => now() - 3_000n, 0],
      ["is down", 1n, () => now() - 100_000n, 0],
      ["has never said anything", 0n, () => 0n, 0],
    ])("whose sequencer %s, a fresh price makes so many options", async (_how, answer, startedAt, options) => {
      await tell("set", 100_000_000n, now());
      const id = await euros(1_000n);
      usePrices([{ ...source, sequencer: { feed: sequencer, graceSeconds } }]);
      await tellUptime(answer, startedAt());
      expect(await countOptions(id)).toBe(options);
      usePrices([source]);
    });

    test("whose uptime feed is no contract, nothing is offered", async () => {
      await tell("set", 100_000_000n, now());
      const id = await euros(1_000n);
      usePrices([{ ...source, sequencer: { feed: `0x${"99".repeat(20)}`, graceSeconds } }]);
      expect(await countOptions(id)).toBe(0);
      usePrices([source]);
    });
  });

  test("in the asset's own currency needs no price, and its option lives as long as the payment", async () => {
    usePrices([{ ...source, feed: `0x${"99".repeat(20)}` }]);
    const [option] = await till.offer(await till.create(100n), await fundBuyer(chain));
    expect(option).toMatchObject({ amount: { value: 1_000_000n }, expiresAt: null });
    usePrices([source]);
  });
});

test.each([
  ["a chain that is none of this file", { chain: "eip155:5" }, /prices\.0\.chain/],
  ["a currency with itself", { quote: "iso4217/EUR" }, /prices\.0/],
  ["no currency", { base: "EUR" }, /prices\.0\.base/],
  ["no age", { maxAgeSeconds: 0 }, /prices\.0\.maxAgeSeconds/],
])("a networks file whose price names %s is refused", (_what, change, message) => {
  const { deployment, chains } = till.deps.networks;
  const document = JSON.parse(
    JSON.stringify({ deployment, chains, prices: [{ ...source, ...change }] }, (_name, value) =>
      typeof value === "bigint" ? value.toString() : value,
    ),
  );
  expect(() => parseNetworks(document)).toThrow(message);
});
