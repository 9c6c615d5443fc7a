import { setTimeout as pause } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { createEuroPayment, startQuotes } from "../../../support/quote-fixture.ts";

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
await setPrice(120n);
const lying = await startAlteringProxy({ target: chain.url });
const honest = await startFaultProxy({ target: chain.url });
afterEach(() => {
  lying.alter(undefined);
  honest.refuse(false);
  honest.hold(undefined);
});

const PRICE = 120_000_000n;
const word = (value: bigint) => value.toString(16).padStart(64, "0");
/** Lets the first endpoint show another price of one euro. */
const lie = (price: bigint) =>
  lying.alter((method, _params, result) =>
    method === "eth_call" && typeof result === "string" ? result.replace(word(PRICE), word(price)) : result,
  );

/** Starts a merchant whose chain has the lying endpoint first and an honest one second, with a payment of ten euros. */
async function startPayment() {
  const fixture = await makeMerchant([assets.usdc], { rpcUrls: [lying.url, honest.url] });
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
  const disagreements = async () => {
    const { values } = await fixture.deps.metrics.priceDisagreements.get();
    return values.reduce((sum, { value }) => sum + value, 0);
  };
  return { ask, disagreements };
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
    const { ask, disagreements } = await startPayment();
    fail();
    lie((PRICE * 95n) / 100n);
    expect(await ask()).toBe(11_400_000n);
    // What one endpoint has shown alone moves no bound.
    lie((PRICE * 95n) / 100n - 1n);
    await expect(ask()).rejects.toMatchObject({ code: "price_unconfirmed", transient: true });
    expect(await disagreements()).toBe(0);
  },
);

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
