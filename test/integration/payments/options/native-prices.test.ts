import type { Hex } from "viem";
import { expect, test } from "vitest";
import { watchNativePrices } from "../../../../payments/options/native-prices.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import { waitFor } from "../../../support/wait-for.ts";

const chain = await startChain();
const feed = await deployTestContract(chain.client, "Feed", "Feed");
const fixture = await makeMerchantFixture(chain);
const { abi } = testContract("Feed", "Feed");
const source = { coin: "ETH", gasOf: [chain.id], quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 3_600 };
const { deployment, chains, prices } = fixture.deps.networks;

async function callFeed(functionName: "set" | "describe", ...args: unknown[]): Promise<void> {
  const hash = await chain.client.writeContract({ address: feed as Hex, abi, functionName, args });
  await chain.client.waitForTransactionReceipt({ hash });
  // A price is kept for five seconds.
  fixture.clock.advance(5_000);
}

test("the price of one wei follows its feed, and is absent while the feed is stale or of another coin", async () => {
  const now = BigInt(Math.floor(Date.now() / 1_000));
  await callFeed("describe", "ETH / USD");
  await callFeed("set", 2_500n * 10n ** 8n, now);
  const deps = { ...fixture.deps, networks: { deployment, chains, prices, nativePrices: [source] } };
  addCleanup(watchNativePrices(deps as typeof fixture.deps, 20));
  const read = async () => (await fixture.deps.metrics.nativePrice.get()).values;
  const becomes = (what: string, values: object[]) =>
    waitFor(async () => JSON.stringify(await read()) === JSON.stringify(values), { within: 30_000, what });
  const labels = { chain: chain.id, currency: "iso4217/USD" };
  await becomes("the price", [{ value: 2.5e-15, labels }]);
  await callFeed("set", 2_500n * 10n ** 8n, now - 7_200n);
  await becomes("no price while it is stale", []);
  await callFeed("set", 3_000n * 10n ** 8n, now);
  await becomes("the new price", [{ value: 3e-15, labels }]);
  await callFeed("describe", "BTC / USD");
  await becomes("no price of another coin", []);
});

test.each([
  ["a chain that the file does not configure", { chain: "eip155:5" }, /nativePrices\.0\.chain/],
  ["the gas of a chain that the file does not configure", { gasOf: ["eip155:5"] }, /nativePrices\.0\.gasOf/],
  ["a chain twice", { gasOf: [chain.id, chain.id] }, /nativePrices\.0\.gasOf/],
  ["a pair for a coin", { coin: "ETH / USD" }, /nativePrices\.0\.coin/],
])("a networks file whose price of gas names %s is refused", (_what, change, message) => {
  const text = JSON.stringify({ deployment, chains, nativePrices: [{ ...source, ...change }] }, (_name, value) =>
    typeof value === "bigint" ? value.toString() : value,
  );
  expect(() => parseNetworks(JSON.parse(text))).toThrow(message);
});
