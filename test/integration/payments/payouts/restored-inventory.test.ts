import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { dispatchSettlements, takePayouts } from "../../../../payments/payouts/dispatch-payouts.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, sendUsdc, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { expectReconciled, restoreDatabase, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import { mintTestToken, startTokenKinds, testTokenBalance } from "../../../support/token-kinds.ts";

const UNIT = 1_000_000n;

/** Starts a merchant who is owed 10 USDC for a payment in another asset, and a treasury that has this inventory or more. */
async function startShop({ inventory = 10n * UNIT } = {}) {
  const { chain, assets, change } = await startTokenKinds();
  const options = { change, assets: [assets.usdc] };
  const first = await makeMerchantFixture(chain, options);
  const { deps } = first;
  await acceptOtherAssets(first);
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, inventory);
  await first.watch();
  const [{ id: exception } = { id: 0 }] = await listExceptions(deps, 50);
  unwrap(await bookException(deps, { actor: testActor, id: exception, as: "capital", note: "inventory" }));
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.permit, buyer.address);
  return { chain, assets, options, first, buyer, paymentId: await first.pay(buyer, 1_000n) };
}

async function acceptOtherAssets({ deps, accountId, merchantId, mode }: MerchantFixture): Promise<void> {
  const owner = { accountId, merchantId, mode };
  const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, owner));
  unwrap(await setAcceptsOtherAssets(deps, { actor: testActor, ...owner, id, accept: true }));
}

test("a lost payout of money that came in another asset is adopted although the inventory that has paid it is short", async () => {
  const { chain, options, first, paymentId } = await startShop();
  const { destination } = first;
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      expect(await lost.settle((await lost.settlementOf(paymentId)).id)).toEqual(["begun"]);
      await lost.relay();
    },
    options,
  );
  expect(await listExceptions(restored.deps, 10)).toMatchObject([{ kind: "left", amount: -10n * UNIT }]);
  const { id } = await restored.settlementOf(paymentId);
  expect(await restored.settle(id)).toEqual(["begun"]);
  for (let round = 0; round < 3; round += 1) await work(restored);
  expect(await restored.settlementOf(paymentId)).toMatchObject({ state: "paid", amount: 10n * UNIT });
  expect(await usdcBalance(chain, destination)).toBe(10n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});

test("a payout that waits for inventory that a lost payout seems to take twice is due again once that one is adopted", async () => {
  const { chain, assets, options, first, buyer, paymentId } = await startShop({ inventory: 20n * UNIT });
  const other = await makeMerchantFixture(chain, { ...options, databaseUrl: first.databaseUrl });
  await acceptOtherAssets(other);
  await mintTestToken(chain, assets.permit, buyer.address);
  const waiting = await other.pay(buyer, 1_000n);
  await other.db.destroy();
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      expect(await lost.settle((await lost.settlementOf(paymentId)).id)).toEqual(["begun"]);
      await lost.relay();
    },
    options,
  );
  expect(await restored.settle((await restored.settlementOf(paymentId)).id)).toEqual(["begun"]);
  const { id: next } = await restored.settlementOf(waiting);
  expect(await dispatchSettlements(restored.deps, [next])).toEqual(["inventory_short"]);
  for (let round = 0; round < 3; round += 1) await work(restored);
  const due = (await takePayouts(restored.deps, "settlement")).flatMap(({ ids }) => ids);
  expect(due).toContain(next);
  expect(await dispatchSettlements(restored.deps, [next])).toEqual(["begun"]);
});

test("a lost refund of a payment in another asset is adopted although the inventory that has paid it is short", async () => {
  const { chain, assets, options, first, buyer, paymentId } = await startShop();
  const { refundId } = unwrap(await refundPayment(first.deps, { actor: testActor, paymentId, mode: first.mode }));
  const before = await testTokenBalance(chain, assets.permit, buyer.address);
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      expect(await lost.refund(refundId)).toEqual(["begun"]);
      await lost.relay();
    },
    options,
  );
  expect(await listExceptions(restored.deps, 10)).toMatchObject([{ kind: "left", amount: -10n * UNIT }]);
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  for (let round = 0; round < 3; round += 1) await work(restored);
  expect(await restored.db.selectFrom("refund").select("state").execute()).toEqual([{ state: "paid" }]);
  expect(await testTokenBalance(chain, assets.permit, buyer.address)).toBe(before + 10n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});

test("a lost refund in another asset that has sent more than requested is drawn on what its merchant is owed for the payment", async () => {
  const { chain, assets, options, first, buyer, paymentId } = await startShop();
  const request = async (of: MerchantFixture, units: bigint) => {
    const amount = { unit: `caip19/${assets.permit}`, value: units * UNIT };
    return unwrap(await refundPayment(of.deps, { actor: testActor, paymentId, mode: of.mode, amount })).refundId;
  };
  const before = await testTokenBalance(chain, assets.permit, buyer.address);
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      expect(await lost.refund(await request(lost, 4n))).toEqual(["begun"]);
      await lost.relay();
    },
    options,
  );
  expect(await restored.refund(await request(restored, 2n))).toEqual(["begun"]);
  for (let round = 0; round < 3; round += 1) await work(restored);
  expect(await restored.db.selectFrom("refund").selectAll().execute()).toMatchObject([
    { amount: 4n * UNIT, owed_amount: 4n * UNIT, state: "paid" },
  ]);
  expect(await restored.settlementOf(paymentId)).toMatchObject({ amount: 6n * UNIT, state: "due" });
  expect(await testTokenBalance(chain, assets.permit, buyer.address)).toBe(before + 4n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});
