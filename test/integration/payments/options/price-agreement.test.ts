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

/** Starts a payment at a price that is this many hours old. The file allows a day. */
async function startWithOldPrice(hours: number, rpcUrls = [lying.url, other.url]) {
  const made = await startPayment(rpcUrls);
  const updatedAt = nowSeconds(made.fixture) - BigInt(hours * 3_600);
  await setFeed(made.fixture.deps.networks.prices[0]?.feed, "Feed", [PRICE, updatedAt]);
  onTestFinished(() => setPrice(120n));
  // A reading is kept for five seconds.
  made.fixture.clock.advance(10_000);
  return { ...made, updatedAt };
}

const DAY = 24 * 3_600;
/** Times at which a price is not usable, seconds from now. */
const spoiledTimes = [
  ["an old", -DAY - 60],
  ["a future", 3_600],
] as const;

test.each([
  ["first", lying],
  ["second", other],
])("the %s endpoint alone does not make a stale price fresh", async (_which, liar) => {
  const { fixture, ask, updatedAt, disagreements } = await startWithOldPrice(25);
  expect(await ask()).toBeUndefined();
  replaceWord(liar, updatedAt, nowSeconds(fixture));
  await expect(ask()).rejects.toMatchObject({ code: "endpoints_disagree", transient: true });
  expect(await disagreements()).toBe(1);
});

test.each(spoiledTimes)("two endpoints of which one shows %s time of a price disagree", async (_what, seconds) => {
  const { fixture, ask, updatedAt, disagreements } = await startWithOldPrice(1);
  replaceWord(lying, updatedAt, nowSeconds(fixture) + BigInt(seconds));
  await expect(ask()).rejects.toMatchObject({ code: "endpoints_disagree", transient: true });
  expect(await disagreements()).toBe(1);
});

test.each(
  spoiledTimes.flatMap(([what, seconds]) => [
    [what, "first", lying, seconds, [1, 0, 0]] as const,
    [what, "second", other, seconds, [0, 1, 0]] as const,
  ]),
)(
  "%s time that the %s of three endpoints shows stops nothing, and is counted",
  async (_what, _which, liar, seconds, counts) => {
    const { fixture, ask, updatedAt, disagreementsOf } = await startWithOldPrice(1, [lying.url, other.url, third.url]);
    replaceWord(liar, updatedAt, nowSeconds(fixture) + BigInt(seconds));
    expect(await ask()).toBe(12_000_000n);
    expect(await disagreementsOf()).toEqual(counts);
  },
);

test.each([
  ["first", lying],
  ["second", other],
])(
  "a %s endpoint that still shows the round of twenty hours ago stops nothing, and is not counted",
  async (_which, lagging) => {
    const { fixture, ask, updatedAt, disagreements } = await startWithOldPrice(0);
    const lag = { price: (PRICE * 1_005n) / 1_000n, updatedAt: nowSeconds(fixture) - 20n * 3_600n };
    lagging.alter((method, _params, result) =>
      method === "eth_call" && typeof result === "string"
        ? result.replaceAll(word(PRICE), word(lag.price)).replaceAll(word(updatedAt), word(lag.updatedAt))
        : result,
    );
    expect([12_000_000n, 12_060_000n]).toContain(await ask());
    expect(await disagreements()).toBe(0);
  },
);

test("a time that becomes too old a moment after the reading does not withhold the price from later requests", async () => {
  const { fixture, updatedAt } = await startWithOldPrice(1);
  const resume = fixture.clock.stop();
  onTestFinished(resume);
  replaceWord(lying, updatedAt, nowSeconds(fixture) - BigInt(DAY - 2));
  await createEuroPayment(fixture);
  fixture.clock.advance(4_000);
  expect(await createEuroPayment(fixture)).toBeDefined();
});

test("an entry of the networks file with a shorter maximum age does not use the reading of another entry", async () => {
  const { fixture } = await startWithOldPrice(1);
  await createEuroPayment(fixture);
  const prices = fixture.deps.networks.prices.map((price) => ({ ...price, maxAgeSeconds: 60 }));
  Object.assign(fixture.deps, { networks: { ...fixture.deps.networks, prices } });
  await expect(createEuroPayment(fixture)).rejects.toThrow(/no price/);
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
  const { fixture, buyer, paymentId, disagreements } = await startPayment([lying.url, other.url]);
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
  return { startedAt, offer, fixture, disagreements };
}

test.each([
  ["first", lying],
  ["second", other],
])("the %s endpoint alone does not end the grace period of a sequencer", async (_which, liar) => {
  const { startedAt, offer } = await startOnRollup(100n);
  expect(await offer()).toEqual([]);
  replaceWord(liar, startedAt, startedAt - 4_000n);
  await expect(offer()).rejects.toMatchObject({ code: "endpoints_disagree", transient: true });
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

test("a grace period that ends at one endpoint a moment after the reading is not over for later requests", async () => {
  const { startedAt, offer, fixture } = await startOnRollup(100n);
  onTestFinished(fixture.clock.stop());
  fixture.clock.advance(130_000);
  replaceWord(lying, startedAt, nowSeconds(fixture) - 3_599n);
  await expect(createEuroPayment(fixture)).rejects.toThrow(/no price/);
  fixture.clock.advance(4_000);
  await expect(createEuroPayment(fixture)).rejects.toThrow(/no price/);
  await expect(offer()).rejects.toMatchObject({ code: "endpoints_disagree" });
});

test("endpoints of which one has not seen yet that the sequencer is up again agree that its prices are not used", async () => {
  const { startedAt, offer, disagreements } = await startOnRollup(100n);
  replaceWord(lying, startedAt, 0n);
  expect(await offer()).toEqual([]);
  expect(await disagreements()).toBe(0);
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
