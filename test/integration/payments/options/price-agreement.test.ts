import { setTimeout as pause } from "node:timers/promises";
import type { Hex } from "viem";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { createEuroPayment, startQuotes } from "../../../support/quote-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
await setPrice(120n);
const [lying, other, third] = await Promise.all([
  startAlteringProxy({ target: chain.url }),
  startAlteringProxy({ target: chain.url }),
  startAlteringProxy({ target: chain.url }),
]);
const honest = await startFaultProxy({ target: chain.url });
afterEach(() => {
  for (const proxy of [lying, other, third]) proxy.alter(undefined);
  honest.refuse(false);
  honest.hold(undefined);
});

const PRICE = 120_000_000n;
/** The selector of latestRoundData(). */
const LATEST_ROUND = "feaf968c";
const word = (value: bigint) => value.toString(16).padStart(64, "0");
/** Lets an endpoint return another word in place of one, wherever a contract returns it. */
const replaceWord = (proxy: typeof lying, from: bigint, to: bigint) =>
  proxy.alter((method, _params, result) =>
    method === "eth_call" && typeof result === "string" ? result.replaceAll(word(from), word(to)) : result,
  );
/** Lets an endpoint, the first one when unset, show another price of one euro. */
const lie = (price: bigint, proxy = lying) => replaceWord(proxy, PRICE, price);

/** Starts a merchant with a payment of ten euros. Unless endpoints are given, the lying one is first and an honest one second. */
async function startPayment(rpcUrls = [lying.url, honest.url]) {
  const fixture = await makeMerchant([assets.usdc], { rpcUrls });
  const buyer = await fundBuyer(chain);
  const paymentId = await createEuroPayment(fixture);
  /** Returns what the payment costs, after every price that was read has become too old to be used. */
  const ask = async () => {
    fixture.clock.advance(130_000);
    for (let retry = 0; ; retry += 1)
      try {
        const [option] = await fixture.offer(paymentId, buyer);
        return option?.amount.value;
      } catch (error) {
        // On a busy machine a reading can take longer than a request waits for it. It goes on, and serves the next request.
        if (!(error instanceof ChainError && error.code === "rpc_unreachable") || retry === 20) throw error;
        await pause(500);
      }
  };
  const { priceDisagreements, pricesUnconfirmed } = fixture.deps.metrics;
  /** Returns how often each endpoint has shown another price. */
  const disagreementsOf = async () => (await priceDisagreements.get()).values.map(({ value }) => value);
  const disagreements = async () => (await disagreementsOf()).reduce((sum, value) => sum + value, 0);
  const unconfirmed = async () => (await pricesUnconfirmed.get()).values.map(({ value }) => value);
  return { ask, disagreements, disagreementsOf, unconfirmed, fixture, buyer, paymentId };
}

test("a price that one endpoint of two shows as a tenth is used for no option, and the disagreement is counted", async () => {
  const { ask, disagreements } = await startPayment();
  lie(PRICE / 10n);
  await expect(ask()).rejects.toMatchObject({ code: "endpoints_disagree", transient: true });
  expect(await disagreements()).toBe(1);
});

test("two endpoints agree on a price while their answers differ by at most one percent", async () => {
  const { ask, disagreements } = await startPayment();
  lie((PRICE * 99n) / 100n);
  expect(await ask()).toBe(11_880_000n);
  lie((PRICE * 99n) / 100n - 1n);
  await expect(ask()).rejects.toMatchObject({ code: "endpoints_disagree" });
  expect(await disagreements()).toBe(1);
});

test("a feed that is another contract at a second endpoint has no price", async () => {
  const { ask, disagreements } = await startPayment();
  const text = Buffer.from("EUR / USD").toString("hex");
  const other = Buffer.from("GBP / USD").toString("hex");
  lying.alter((_method, _params, result) => (typeof result === "string" ? result.replace(text, other) : result));
  await expect(ask()).rejects.toMatchObject({ code: "endpoints_disagree" });
  expect(await disagreements()).toBe(1);
});

test.each([
  ["resets connections", () => honest.refuse(true)],
  ["does not respond", () => honest.hold(() => new Promise(() => undefined))],
])(
  "while the second endpoint %s, a price is used within five percent of the last one that two showed",
  async (_what, fail) => {
    const { ask, disagreements, unconfirmed } = await startPayment();
    fail();
    lie((PRICE * 95n) / 100n);
    expect(await ask()).toBe(11_400_000n);
    // What one endpoint has shown alone moves no bound.
    lie((PRICE * 95n) / 100n - 1n);
    await expect(ask()).rejects.toMatchObject({ code: "price_unconfirmed", transient: true });
    expect(await disagreements()).toBe(0);
    expect(await unconfirmed()).toEqual([1]);
  },
);

test.each([
  ["first", -32_000, "header not found"],
  ["second", -32_000, "execution aborted (timeout = 5s)"],
  ["second", -32_002, "resource unavailable"],
  ["second", -32_603, "internal error"],
] as const)("a %s endpoint that returns the error %s %s shows no other price", async (place, code, message) => {
  const { ask, disagreements } = await startPayment([lying.url, other.url]);
  const failing = place === "first" ? lying : other;
  failing.alter((_method, params, result) =>
    JSON.stringify(params).includes(LATEST_ROUND) ? new RpcRefusal({ code, message }) : result,
  );
  expect(await ask()).toBe(12_000_000n);
  lie((PRICE * 95n) / 100n - 1n, place === "first" ? other : lying);
  await expect(ask()).rejects.toMatchObject({ code: "price_unconfirmed" });
  expect(await disagreements()).toBe(0);
});

test.each([
  ["first", lying, [1, 0, 0]],
  ["second", other, [0, 1, 0]],
])(
  "a price that two endpoints of three show is used, and the %s one is counted as disagreeing",
  async (_, liar, counts) => {
    const { ask, disagreementsOf } = await startPayment([lying.url, other.url, third.url]);
    lie(PRICE / 2n, liar);
    expect(await ask()).toBe(12_000_000n);
    expect(await disagreementsOf()).toEqual(counts);
  },
);

test("three endpoints that all show other prices have no price", async () => {
  const { ask, disagreementsOf } = await startPayment([lying.url, other.url, third.url]);
  lie(PRICE / 2n);
  lie(PRICE * 2n, third);
  await expect(ask()).rejects.toMatchObject({ code: "endpoints_disagree" });
  expect(await disagreementsOf()).toEqual([0, 1, 1]);
});

test("an endpoint that lags is compared after the others, so the old price that it shows stops nothing", async () => {
  const { ask, disagreements, fixture } = await startPayment([lying.url, other.url, third.url]);
  for (const ahead of [lying, third])
    ahead.alter((method, _params, result) =>
      method === "eth_getBlockByNumber" ? { ...(result as object), number: "0xfffff" } : result,
    );
  const opened = fixture.deps.chains.get(chain.id);
  if (opened?.namespace !== "eip155") throw new Error("the chain is not open");
  await opened.compareHeights();
  for (const proxy of [lying, third]) proxy.alter(undefined);
  lie(PRICE / 2n, other);
  expect(await ask()).toBe(12_000_000n);
  expect(await disagreements()).toBe(0);
});

/** Sets what a feed, or a sequencer's uptime feed, returns. */
async function setFeed(address: string | undefined, contract: "Feed" | "Sequencer", args: readonly bigint[]) {
  const { abi } = testContract("Feed", contract);
  const hash = await chain.client.writeContract({ address: address as Hex, abi, functionName: "set", args });
  await chain.client.waitForTransactionReceipt({ hash });
}

const nowSeconds = ({ clock }: { clock: { now: () => Date } }) => BigInt(Math.floor(clock.now().getTime() / 1_000));

test.each([
  ["first", lying],
  ["second", other],
])("the %s endpoint alone does not make a stale price fresh", async (_which, liar) => {
  const { fixture, buyer } = await startPayment([lying.url, other.url]);
  const updatedAt = nowSeconds(fixture) - 20n * 3_600n;
  await setFeed(fixture.deps.networks.prices[0]?.feed, "Feed", [PRICE, updatedAt]);
  onTestFinished(() => setPrice(120n));
  const expiresAt = new Date(fixture.clock.now().getTime() + 10 * 3_600_000);
  const paymentId = await createEuroPayment(fixture, { expiresAt });
  // The file allows a day.
  fixture.clock.advance(5 * 3_600_000);
  expect(await fixture.offer(paymentId, buyer)).toEqual([]);
  fixture.clock.advance(10_000);
  replaceWord(liar, updatedAt, nowSeconds(fixture));
  expect(await fixture.offer(paymentId, buyer)).toEqual([]);
});

/** Lets an endpoint show a time of the price that no Date can hold. */
const showNoTime = (proxy: typeof lying) =>
  proxy.alter((method, _params, result) =>
    method === "eth_call" && typeof result === "string"
      ? result.replace(new RegExp(`(${word(PRICE)}[0-9a-f]{64})[0-9a-f]{64}`), `$1${word(2n ** 100n)}`)
      : result,
  );

test.each([
  ["first of two", lying, [lying.url, other.url]],
  ["second of two", other, [lying.url, other.url]],
  ["second of three", other, [lying.url, other.url, third.url]],
])(
  "a confirm is verified, and money is booked, while the %s endpoints shows a time that is none",
  async (_which, liar, rpcUrls) => {
    const { fixture, ask, disagreements } = await startPayment(rpcUrls);
    const confirmed = await createEuroPayment(fixture);
    const attemptId = await fixture.attempt(confirmed, await fundBuyer(chain));
    const more = { amount: { unit: "iso4217/EUR", value: 1_000n } };
    const pushed = await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain), cents: 1n, more });
    showNoTime(liar);
    fixture.clock.advance(10_000);
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toBe("verified");
    await pushed.relay();
    await fixture.relay();
    await fixture.watch();
    for (const id of [confirmed, pushed.paymentId])
      expect(await fixture.status(id)).toMatchObject({ state: "succeeded" });
    // An endpoint without a time shows nothing, as one that returns an error.
    expect(await ask()).toBe(12_000_000n);
    expect(await disagreements()).toBe(0);
  },
);

/** Starts a payment on a rollup whose sequencer came up this many seconds ago. `offer` asks for options when no quote is valid. */
async function startOnRollup(startedAgo: bigint) {
  const { fixture, buyer, paymentId } = await startPayment([lying.url, other.url]);
  const sequencer = await deployTestContract(chain.client, "Feed", "Sequencer");
  const startedAt = nowSeconds(fixture) - startedAgo;
  await setFeed(sequencer, "Sequencer", [0n, startedAt]);
  const prices = fixture.deps.networks.prices.map((price) => ({
    ...price,
    sequencer: { feed: sequencer, graceSeconds: 3_600 },
  }));
  Object.assign(fixture.deps, { networks: { ...fixture.deps.networks, prices } });
  const offer = () => {
    fixture.clock.advance(130_000);
    return fixture.offer(paymentId, buyer);
  };
  return { startedAt, offer };
}

test.each([
  ["first", lying],
  ["second", other],
])("the %s endpoint alone does not end the grace period of a sequencer", async (_which, liar) => {
  const { startedAt, offer } = await startOnRollup(100n);
  expect(await offer()).toEqual([]);
  replaceWord(liar, startedAt, startedAt - 4_000n);
  expect(await offer()).toEqual([]);
});

test.each([
  ["first", lying],
  ["second", other],
])("the %s endpoint alone does not end the grace period with a time that is none", async (_which, liar) => {
  const { startedAt, offer } = await startOnRollup(100n);
  expect(await offer()).toEqual([]);
  replaceWord(liar, startedAt, 2n ** 100n);
  expect(await offer()).toEqual([]);
});

test("a price whose sequencer is up at one endpoint only is not used", async () => {
  const { startedAt, offer } = await startOnRollup(4_000n);
  expect(await offer()).toHaveLength(1);
  replaceWord(lying, startedAt, 0n);
  await expect(offer()).rejects.toMatchObject({ code: "endpoints_disagree" });
});

test("a process that has not seen two endpoints agree on a price uses none", async () => {
  const fixture = await makeMerchant([assets.usdc], { rpcUrls: [lying.url, honest.url] });
  honest.refuse(true);
  await expect(createEuroPayment(fixture)).rejects.toMatchObject({ code: "price_unconfirmed", transient: true });
  honest.refuse(false);
  // A failed reading is kept for five seconds, and an endpoint that failed is suspended as long.
  await expect
    .poll(
      () => {
        fixture.clock.advance(5_000);
        return createEuroPayment(fixture).catch(() => undefined);
      },
      { timeout: 30_000 },
    )
    .toBeDefined();
});
