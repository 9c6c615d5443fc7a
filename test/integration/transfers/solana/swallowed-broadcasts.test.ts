import { expect, onTestFinished, test } from "vitest";
import { startBusyEndpoint } from "../../../support/busy-solana-endpoint.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });

/** A merchant's deployment whose first endpoint accepts transactions and can pass none on. It answers every other call correctly. */
async function startSwallowing({ more = [], change = {} }: { more?: string[]; change?: Record<string, unknown> } = {}) {
  const first = await startBusyEndpoint({ target: solana.url });
  const second = await startFaultProxy({ target: solana.url });
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [first.url, second.url, ...more], change });
  return { fixture, second, swallow: () => first.setPrice(2n ** 62n) };
}

test("a payment that the first endpoint accepts and passes to no node is made by the second one", async () => {
  const { fixture, second, swallow } = await startSwallowing();
  swallow();
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  await fixture.submit();
  expect(second.calls["sendTransaction"], "it is not late yet").toBeUndefined();
  await fixture.watchUntilState(paymentId, "succeeded");
  expect(second.calls["sendTransaction"]).toBe(1);
});

test("payments that the first endpoint passes to no node are made by the third one while the second one hangs", async () => {
  // Longer than the test takes.
  const change = { rpcTimeoutMs: 600_000 };
  const { fixture, second, swallow } = await startSwallowing({ more: [solana.url], change });
  const { promise, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  second.hold(({ method }) => (method === "sendTransaction" ? promise : undefined));
  swallow();
  for (let payment = 0; payment < 2; payment += 1) {
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
    await fixture.submit();
    await fixture.watchUntilState(paymentId, "succeeded");
  }
  expect(second.calls["sendTransaction"]).toBe(1);
});

test("a payout that the first endpoint accepts and passes to no node is made by the second one, at its first price", async () => {
  const { fixture, swallow } = await startSwallowing();
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  swallow();
  expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await fixture.submit();
  await fixture.watchUntil(async () => (await fixture.settlementOf(paymentId)).state === "paid");
  const payouts = (await fixture.transactions()).filter(({ nonce_account }) => nonce_account !== null);
  expect(payouts.map(({ replacement }) => replacement)).toEqual([0]);
});
