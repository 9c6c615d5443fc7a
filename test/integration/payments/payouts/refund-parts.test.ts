import { expect, test } from "vitest";
import { type RefundAmount, refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { withdrawRefund } from "../../../../payments/payouts/withdraw-refunds.ts";
import { fundBuyer, networksFor, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const [usdc] = (await networksFor(chain)).chains[0]?.assets ?? [];

/** Makes a payment of 100 units of USDC. `request` asks for a refund of it, in minor units, or of the rest. */
async function payOnce(dust: string) {
  const fixture = await makeMerchantFixture(chain, { change: { assets: [{ ...usdc, dust }] } });
  const paymentId = await fixture.pay(await fundBuyer(chain), 10_000n);
  const request = (value?: bigint) => {
    const amount: RefundAmount | undefined = value === undefined ? undefined : { unit: `caip19/${chain.asset}`, value };
    return refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live", amount });
  };
  return { fixture, request };
}

test("a part of a payment below the asset's dust amount is refused, unless it is the rest", async () => {
  const { request } = await payOnce("10000");
  expect(await request(9_999n)).toMatchObject({
    code: "params_validation",
    message: expect.stringMatching(/^amount\.value: .*\(10000 of caip19\/eip155:31337\/erc20:0x\w+\)$/),
  });
  unwrap(await request(10_000n));
  unwrap(await request(99_989_999n));
  expect(unwrap(await request(1n))).toMatchObject({ amount: 1n, status: "pending" });
});

test("a payment has at most twenty parts, after which only the rest is refunded, and withdrawn refunds do not count", async () => {
  const { fixture, request } = await payOnce("0");
  const made = await Promise.all(Array.from({ length: 24 }, () => request(1n)));
  const parts = made.flatMap((one) => (one.ok ? [one.value] : []));
  expect(parts).toHaveLength(20);
  // What is left is named in the asset that was paid, whatever the unit of the request is.
  const message = expect.stringMatching(/^amount: .* \(\d+ of caip19\/eip155:31337\/erc20:0x\w+ left\)$/);
  for (const one of made) if (!one.ok) expect(one).toMatchObject({ code: "params_validation", message });
  unwrap(await withdrawRefund(fixture.deps, { actor: testActor, refundId: parts[0]?.refundId ?? "" }));
  unwrap(await request(2n));
  expect(await request(1n)).toMatchObject({ code: "params_validation" });
  expect(unwrap(await request())).toMatchObject({ amount: 99_999_979n });
});
