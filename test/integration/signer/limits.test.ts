import { describe, expect, test } from "vitest";
import { fundBuyer, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();
const HOUR_MS = 3_600_000;

/** A merchant with a signer of its own, whose limits the test sets. */
async function makeShop() {
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  /** Makes a payment and asks for its settlement. Returns the outcome, and the settlement's id. */
  const settleNew = async (cents: bigint) => {
    const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), cents));
    return { id, outcome: (await fixture.settle(id))[0] };
  };
  return { ...fixture, signing, settleNew };
}

describe("limits", () => {
  test("a payout above the limit of one payout waits until the operator raises the limit", async () => {
    const shop = await makeShop();
    await shop.signing.setLimits({ asset: { perPayout: "2000000" } });
    expect((await shop.settleNew(200n)).outcome).toBe("begun");
    const { id, outcome } = await shop.settleNew(201n);
    expect(outcome).toBe("limit_payout");
    await shop.signing.setLimits();
    expect(await shop.settle(id)).toEqual(["begun"]);
  });

  test("a merchant's payouts of 24 hours stop at its limit and go on a day later", async () => {
    const shop = await makeShop();
    await shop.settleNew(100n);
    shop.signing.clock.advance(80 * HOUR_MS);
    await shop.signing.setLimits({ asset: { perMerchantDay: "3000000", newMerchantPerDay: "0" } });
    expect((await shop.settleNew(200n)).outcome).toBe("begun");
    const { id, outcome } = await shop.settleNew(101n);
    expect(outcome).toBe("limit_merchant_day");
    shop.signing.clock.advance(24 * HOUR_MS + 1);
    expect(await shop.settle(id)).toEqual(["begun"]);
  });

  test("a merchant whose first destination is younger than the waiting period has a lower limit", async () => {
    const shop = await makeShop();
    await shop.signing.setLimits({ asset: { newMerchantPerDay: "2500000" } });
    expect((await shop.settleNew(200n)).outcome).toBe("begun");
    const { id, outcome } = await shop.settleNew(100n);
    expect(outcome).toBe("limit_merchant_day");
    shop.signing.clock.advance(72 * HOUR_MS);
    expect(await shop.settle(id)).toEqual(["begun"]);
  });

  test("the payouts of an asset stop at its limit of one hour, whichever merchant they go to", async () => {
    const shop = await makeShop();
    await shop.signing.setLimits({ asset: { perHour: "2000000" } });
    expect((await shop.settleNew(150n)).outcome).toBe("begun");
    const { id, outcome } = await shop.settleNew(51n);
    expect(outcome).toBe("limit_asset_hour");
    shop.signing.clock.advance(HOUR_MS + 1);
    expect(await shop.settle(id)).toEqual(["begun"]);
  });

  test.each([
    ["a pause", "paused", { file: { paused: true } }],
    ["an invalid file", "limits_invalid", { file: { pause: false } }],
    ["a file that is not JSON", "limits_invalid", "{"],
    ["a file without the asset", "unknown_asset", { file: { assets: {} } }],
  ])("%s stops every payout until the file is corrected", async (_what, reason, change) => {
    const shop = await makeShop();
    await shop.signing.setLimits(change);
    const { id, outcome } = await shop.settleNew(100n);
    expect(outcome).toBe(reason);
    expect(await shop.signing.registry.getSingleMetricAsString("pay_signer_refusals_total")).toContain(
      `pay_signer_refusals_total{reason="${reason}",role="signer"} 1`,
    );
    await shop.signing.setLimits();
    expect(await shop.settle(id)).toEqual(["begun"]);
  });

  test("a payout that is asked for again counts once", async () => {
    const shop = await makeShop();
    await shop.signing.setLimits({ asset: { perHour: "1000000" } });
    const request = {
      kind: "settlement" as const,
      merchantId: shop.merchantId,
      asset: chain.asset,
      number: 1,
      amount: 1_000_000n,
      receiver: shop.destination,
      deposits: [],
    };
    expect((await shop.settleNew(100n)).outcome).toBe("begun");
    const [first] = await shop.signing.signer.signPayouts([request]);
    const [second] = await shop.signing.signer.signPayouts([request]);
    expect(first).toMatchObject({ ok: true });
    expect(second).toEqual(first);
    expect(shop.signing.payouts()).toHaveLength(1);
  });
});
