import { describe, expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { insertDeposits } from "../../../signer/records.ts";
import { inStoreTransaction } from "../../../signer/store.ts";
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

/**
 * A signer that a thief with a worker's certificate asks for payouts. Its endpoints have shown a deposit of 5 units for each
 * merchant that the thief has invented.
 */
async function makeThief({
  newMerchantsPerDay = "5000000",
  signing: given,
}: {
  newMerchantsPerDay?: string;
  signing?: Awaited<ReturnType<typeof startTestSigner>>;
} = {}) {
  const signing = given ?? (await startTestSigner(chain));
  const { store, clock } = signing;
  await signing.setLimits({ asset: { newMerchantPerDay: "1000000", newMerchantsPerDay } });
  const settlement = (merchantId: string) => {
    const of = { kind: "settlement" as const, merchantId, asset: chain.asset, number: 1, amount: 1_000_000n };
    return { ...of, receiver: newKey().address, deposits: [] };
  };
  const fund = (merchantId: string) => {
    const place = { chain: chain.id, txHash: `0x${merchantId}`, logIndex: 0, blockNumber: 1, payer: "0x02" };
    const deposit = { ...place, asset: chain.asset, amount: 5_000_000n, merchantId, paymentId: `pay_${merchantId}` };
    inStoreTransaction(store, () => insertDeposits(store, [deposit], clock.now()));
  };
  const report = (...destinations: { merchantId: string; asset: string; receiver: string }[]) =>
    signing.signer.claimDestinations({
      destinations: destinations.map((one) => ({ ...one, state: "applied" as const })),
      statements: [],
      approvalKeys: [],
      revokedKeys: [],
    });
  /** Asks for payouts in one request. Returns the reasons of refusals, undefined for a signed one. */
  const ask = async (...payouts: ReturnType<typeof settlement>[]) =>
    (await signing.signer.signPayouts(payouts)).map((result) => (result.ok ? undefined : result.reason));
  const invent = (count: number, prefix = "mrch") =>
    Array.from({ length: count }, (_, at) => {
      fund(`${prefix}_${at}`);
      return settlement(`${prefix}_${at}`);
    });
  const paid = () => signing.payouts().reduce((sum, { counted }) => sum + BigInt(String(counted)), 0n);
  return { ...signing, settlement, fund, report, ask, invent, paid };
}

describe("new merchants", () => {
  test("are paid together no more than their shared limit within 24 hours", async () => {
    const { ask, invent, paid, clock } = await makeThief();
    const invented = invent(8);
    const refused = "limit_new_merchants_day";
    expect(await ask(...invented)).toEqual([...Array.from({ length: 5 }), refused, refused, refused]);
    clock.advance(23 * HOUR_MS);
    expect(await ask(...invented.slice(5), ...invent(2, "more"))).toEqual(Array.from({ length: 5 }, () => refused));
    expect(paid()).toBe(5_000_000n);
    clock.advance(HOUR_MS + 1);
    expect(await ask(...invented.slice(5))).toEqual([undefined, undefined, undefined]);
    // What is signed once more counts nothing.
    expect(await ask(...invented)).toEqual(Array.from({ length: 8 }));
    expect(paid()).toBe(8_000_000n);
  });

  test("share their limit also when their payouts are asked for at the same time", async () => {
    const { ask, invent, paid } = await makeThief();
    const answers = await Promise.all(invent(20).map((one) => ask(one)));
    expect(answers.flat().filter((reason) => reason === undefined)).toHaveLength(5);
    expect(answers.flat().filter((reason) => reason === "limit_new_merchants_day")).toHaveLength(15);
    expect(paid()).toBe(5_000_000n);
  });

  test("stay new for the waiting period after their first deposit, however long ago they were reported", async () => {
    const { ask, fund, report, settlement, clock } = await makeThief({ newMerchantsPerDay: "1000000" });
    const [one, two] = [settlement("mrch_1"), settlement("mrch_2")];
    await report(...[one, two].map(({ merchantId, asset, receiver }) => ({ merchantId, asset, receiver })));
    clock.advance(1_000 * HOUR_MS);
    for (const { merchantId } of [one, two]) fund(merchantId);
    expect(await ask({ ...one, amount: 1_000_001n })).toEqual(["limit_merchant_day"]);
    expect(await ask(one, two)).toEqual([undefined, "limit_new_merchants_day"]);
    clock.advance(72 * HOUR_MS);
    expect(await ask(two, { ...one, number: 2, amount: 4_000_000n })).toEqual([undefined, undefined]);
  });

  test("leave the payouts of an older merchant alone when their limit is reached", async () => {
    const { ask, fund, settlement, invent, clock } = await makeThief();
    const old = settlement("old");
    fund("old");
    expect(await ask(old)).toEqual([undefined]);
    clock.advance(72 * HOUR_MS);
    expect(await ask(...invent(6))).toEqual([...Array.from({ length: 5 }), "limit_new_merchants_day"]);
    expect(await ask({ ...old, number: 2, amount: 4_000_000n })).toEqual([undefined]);
  });

  test("are counted and logged with their first destination", async () => {
    const { ask, invent, settlement, report, registry, lines } = await makeThief();
    await ask(...invent(2));
    const { merchantId, asset, receiver } = settlement("mrch_9");
    for (let times = 0; times < 2; times += 1) await report({ merchantId, asset, receiver });
    // A second receiver waits, and another alert reports it.
    await report({ merchantId, asset, receiver: newKey().address });
    const metric = await registry.getSingleMetric("pay_signer_first_destinations_total")?.get();
    expect(metric?.values).toMatchObject([{ value: 3 }]);
    const logged = lines.filter((line) => line.includes("first destination applies at once"));
    expect(logged.map((line) => JSON.parse(line) as { merchant: string })).toMatchObject(
      ["mrch_0", "mrch_1", "mrch_9"].map((merchant) => ({ merchant })),
    );
  });
});

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

  test("a new merchant's payout waits while others have used their shared limit, and goes out a day later", async () => {
    const shop = await makeShop();
    const { ask, invent } = await makeThief({ signing: shop.signing });
    expect(await ask(...invent(5))).toEqual(Array.from({ length: 5 }));
    const { id, outcome } = await shop.settleNew(100n);
    expect(outcome).toBe("limit_new_merchants_day");
    shop.signing.clock.advance(24 * HOUR_MS + 1);
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
