import { sql } from "kysely";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { lockInventory, readInventory } from "../../../../db/queries/inventory.ts";
import type { Db } from "../../../../db/tables.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { dispatchRefunds, listBlockedPayouts } from "../../../../payments/payouts/dispatch-payouts.ts";
import { findRefundView } from "../../../../payments/payouts/find-refunds.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, sendUsdc, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { startTestSigner } from "../../../support/test-signer.ts";
import { mintTestToken, startTokenKinds } from "../../../support/token-kinds.ts";
import { waitFor } from "../../../support/wait-for.ts";

const UNIT = 1_000_000n;

/** Starts a chain of its own, so that no other test's money is in its treasury. */
async function startShops({ separate = false } = {}) {
  const kinds = await startTokenKinds();
  const { chain, assets, change } = kinds;
  const signing = separate ? await startTestSigner(chain, { change }) : undefined;
  const options = { change, assets: [assets.usdc], ...(signing ? { signer: signing.signer } : {}) };
  /** Returns a merchant who is paid out in USDC and accepts other assets. */
  const makeShop = async (databaseUrl?: string) => {
    const fixture = await makeMerchantFixture(chain, { ...options, ...(databaseUrl ? { databaseUrl } : {}) });
    const { deps, accountId, merchantId, mode } = fixture;
    const owner = { accountId, merchantId, mode };
    const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, owner));
    unwrap(await setAcceptsOtherAssets(deps, { actor: testActor, ...owner, id, accept: true }));
    return fixture;
  };
  const payInUsdc = async (of: MerchantFixture, cents: bigint) => of.pay(await fundBuyer(chain), cents);
  const payInToken = async (of: MerchantFixture, cents: bigint) => {
    const buyer = privateKeyToAccount(newKey().privateKey);
    await mintTestToken(chain, assets.permit, buyer.address);
    return of.pay(buyer, cents);
  };
  const inventoryOf = (of: MerchantFixture, asset = assets.usdc) =>
    of.db.transaction().execute((db) => readInventory(db, asset));
  /** Deposits USDC into the treasury and books it as the operator's capital. */
  const addInventory = async (of: MerchantFixture, amount: bigint) => {
    await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, amount);
    await of.watch();
    const [{ id } = { id: 0 }] = await listExceptions(of.deps, 50);
    unwrap(await bookException(of.deps, { actor: testActor, id, as: "capital", note: "inventory" }));
  };
  return { ...kinds, signing, makeShop, payInUsdc, payInToken, inventoryOf, addInventory };
}

async function relay(of: MerchantFixture) {
  await of.relay();
  await of.watch();
}
async function settle(of: MerchantFixture, paymentId: string) {
  const outcomes = await of.settle((await of.settlementOf(paymentId)).id);
  await relay(of);
  return outcomes;
}
async function requestRefund(of: MerchantFixture, paymentId: string): Promise<string> {
  return unwrap(await refundPayment(of.deps, { actor: testActor, paymentId, mode: of.mode })).refundId;
}

test.each([
  ["the embedded signer", false],
  ["a separate signer", true],
])(
  "a refund takes no other merchant's money if its merchant's balance came in another asset (%s)",
  async (_signer, separate) => {
    const { chain, signing, makeShop, payInUsdc, payInToken, inventoryOf } = await startShops({ separate });
    const shop = await makeShop();
    const other = await makeShop(shop.databaseUrl);
    const refunded = await payInUsdc(shop, 1_000n);
    expect(await settle(shop, refunded)).toEqual(["begun"]);
    const theirs = await payInUsdc(other, 1_500n);
    const converted = await payInToken(shop, 1_000n);
    const refundId = await requestRefund(shop, refunded);
    expect(await shop.refund(refundId)).toEqual(["inventory_short"]);
    if (signing) expect(signing.payouts().map(({ kind }) => kind)).toEqual(["settlement"]);
    expect(await inventoryOf(shop)).toBe(0n);
    expect(await shop.settlementOf(converted)).toMatchObject({ state: "due", amount: 10n * UNIT });
    expect(await settle(other, theirs)).toEqual(["begun"]);
    expect(await usdcBalance(chain, other.destination)).toBe(15n * UNIT);

    // The merchant's next payment in USDC covers the refund.
    await payInUsdc(shop, 1_000n);
    expect(await shop.refund(refundId)).toEqual(["begun"]);
    await relay(shop);
    expect(await inventoryOf(shop)).toBe(0n);
  },
);

test("a refund that lacks inventory is reported as such, apart from one that its merchant's balance does not cover", async () => {
  const { assets, makeShop, payInUsdc, payInToken } = await startShops();
  const shop = await makeShop();
  const poor = await makeShop(shop.databaseUrl);
  const refunded = [await payInUsdc(shop, 2_000n), await payInUsdc(shop, 1_000n)];
  for (const paymentId of refunded) expect(await settle(shop, paymentId)).toEqual(["begun"]);
  await payInToken(shop, 1_000n);
  const ids: string[] = [];
  for (const paymentId of refunded) ids.push(await requestRefund(shop, paymentId));
  expect(await dispatchRefunds(shop.deps, ids)).toEqual(["balance_short", "inventory_short"]);
  const reasonOf = async (of: MerchantFixture, refundId: string) => {
    const { status, reason } = unwrap(await findRefundView(of.deps, { refundId }));
    return [status, reason];
  };
  expect(await reasonOf(shop, ids[1] ?? "")).toEqual(["pending", "inventory_short"]);
  const { merchantId } = shop;
  const blocked = { kind: "refund", merchantId, asset: assets.usdc, blockedBy: "inventory_short" };
  expect(await listBlockedPayouts(shop.deps, 10)).toMatchObject([blocked]);
  expect(shop.lines.filter((line) => line.includes("treasury inventory of an asset is short"))).toEqual([
    expect.stringContaining(ids[1] ?? ""),
  ]);

  const sold = await payInUsdc(poor, 1_000n);
  expect(await settle(poor, sold)).toEqual(["begun"]);
  const uncovered = await requestRefund(poor, sold);
  expect(await reasonOf(poor, uncovered)).toEqual(["pending", null]);
  expect(await dispatchRefunds(poor.deps, [uncovered])).toEqual(["balance_short"]);
  expect(await reasonOf(poor, uncovered)).toEqual(["pending", "balance_short"]);
  await payInUsdc(poor, 1_000n);
  expect(await dispatchRefunds(poor.deps, [uncovered])).toEqual(["begun"]);
  expect(await reasonOf(poor, uncovered)).toEqual(["processing", null]);
});

test("a refund is drawn on older payments in another asset only after newer ones in its own", async () => {
  const { makeShop, payInUsdc, payInToken, inventoryOf } = await startShops();
  const shop = await makeShop();
  const refunded = await payInUsdc(shop, 1_000n);
  expect(await settle(shop, refunded)).toEqual(["begun"]);
  const older = await payInToken(shop, 800n);
  const newer = await payInUsdc(shop, 1_500n);
  expect(await shop.refund(await requestRefund(shop, refunded))).toEqual(["begun"]);
  expect(await shop.settlementOf(older)).toMatchObject({ state: "due", amount: 8n * UNIT });
  expect(await shop.settlementOf(newer)).toMatchObject({ state: "due", amount: 5n * UNIT });
  expect(await inventoryOf(shop)).toBe(0n);
});

test("a refund in another asset is drawn on payments in other assets before older ones in the merchant's own", async () => {
  const { makeShop, payInUsdc, payInToken, addInventory } = await startShops();
  const shop = await makeShop();
  await addInventory(shop, 5n * UNIT);
  const refunded = await payInToken(shop, 500n);
  expect(await settle(shop, refunded)).toEqual(["begun"]);
  const older = await payInUsdc(shop, 1_000n);
  const newer = await payInToken(shop, 700n);
  expect(await shop.refund(await requestRefund(shop, refunded))).toEqual(["begun"]);
  expect(await shop.settlementOf(older)).toMatchObject({ state: "due", amount: 10n * UNIT });
  expect(await shop.settlementOf(newer)).toMatchObject({ state: "due", amount: 2n * UNIT });
});

/** Starts payouts while another transaction holds the inventory of an asset, and runs `meanwhile` when all of them wait for it. */
async function startBehindInventory<T>(
  of: MerchantFixture,
  asset: string,
  { start, meanwhile }: { start: readonly (() => Promise<T>)[]; meanwhile?: (db: Db) => Promise<unknown> },
): Promise<T[]> {
  const { outcomes } = await of.db.transaction().execute(async (db) => {
    await lockInventory(db, asset);
    const all = Promise.all(start.map((one) => one()));
    const areWaiting = async () => {
      const { rows } = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(of.db);
      return rows.length === start.length;
    };
    await waitFor(areWaiting, { within: 20_000, what: "the payouts wait for the inventory" });
    await meanwhile?.(db);
    return { outcomes: all };
  });
  return outcomes;
}

test("a refund and a payout that compete for inventory for one begin one after the other", async () => {
  const { assets, makeShop, payInUsdc, payInToken, inventoryOf, addInventory } = await startShops();
  const shop = await makeShop();
  const other = await makeShop(shop.databaseUrl);
  const refunded = await payInUsdc(shop, 1_000n);
  expect(await settle(shop, refunded)).toEqual(["begun"]);
  await payInToken(shop, 1_000n);
  const { id } = await other.settlementOf(await payInToken(other, 1_000n));
  await addInventory(shop, 10n * UNIT);
  const refundId = await requestRefund(shop, refunded);
  const start = [() => shop.refund(refundId), () => other.settle(id)];
  const outcomes = (await startBehindInventory<string[]>(shop, assets.usdc, { start })).flat();
  expect(outcomes.toSorted()).toEqual(["begun", "inventory_short"]);
  expect(await inventoryOf(shop)).toBe(0n);
});

test("a refund and a payout of money that came in another asset lock nothing else while they wait for the inventory", async () => {
  const { assets, makeShop, payInToken, addInventory } = await startShops();
  const shop = await makeShop();
  await addInventory(shop, 5n * UNIT);
  const [refunded, settled] = [await payInToken(shop, 300n), await payInToken(shop, 500n)];
  const meanwhile = (db: Db) =>
    sql`select from settlement s join merchant_balance b using (merchant_id, asset) for update nowait`.execute(db);
  const refundId = await requestRefund(shop, refunded);
  const refunding = { start: [() => shop.refund(refundId)], meanwhile };
  expect(await startBehindInventory<string[]>(shop, assets.permit, refunding)).toEqual([["begun"]]);
  await relay(shop);
  const { id } = await shop.settlementOf(settled);
  const settling = { start: [() => shop.settle(id)], meanwhile };
  expect(await startBehindInventory<string[]>(shop, assets.usdc, settling)).toEqual([["begun"]]);
});

test("what a merchant is owed in its own asset is no inventory for others, and is paid out while what came in another asset waits", async () => {
  const { chain, makeShop, payInUsdc, payInToken, inventoryOf, addInventory } = await startShops();
  const shop = await makeShop();
  await accumulatePayouts(shop, { ms: 60_000 });
  const other = await makeShop(shop.databaseUrl);
  const own = await payInUsdc(shop, 1_000n);
  const converted = [await payInToken(shop, 100n), await payInToken(shop, 200n)];
  expect(await shop.settlementOf(own)).toMatchObject({ number: 1, amount: 10n * UNIT, converted: false });
  for (const paymentId of converted)
    expect(await shop.settlementOf(paymentId)).toMatchObject({ number: 2, amount: 3n * UNIT, converted: true });
  expect(await inventoryOf(shop)).toBe(0n);
  expect(await settle(other, await payInToken(other, 1_000n))).toEqual(["inventory_short"]);
  shop.clock.advance(61_000);
  await shop.watch();
  expect(await settle(shop, converted[0] ?? "")).toEqual(["inventory_short"]);
  expect(await settle(shop, own)).toEqual(["begun"]);
  expect(await usdcBalance(chain, shop.destination)).toBe(10n * UNIT);
  await addInventory(shop, 3n * UNIT);
  expect(await settle(shop, converted[0] ?? "")).toEqual(["begun"]);
  expect(await usdcBalance(chain, shop.destination)).toBe(13n * UNIT);
});
