import { expect, test } from "vitest";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { createSendHandlers } from "../../../../payments/lifecycle/relay-transfers.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { dispatchSettlements } from "../../../../payments/payouts/dispatch-payouts.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { relayReady } from "../../../../transfers/evm/drive-lanes.ts";
import { watchChain } from "../../../../transfers/watch-pass.ts";
import { fundBuyer, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { balanceOf, restoreDatabase, unpaidOf, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeEpochMemory } from "../../../support/test-deps.ts";
import { waitUntilMined } from "../../../support/transfers-fixture.ts";

const UNIT = 1_000_000n;

/**
 * A merchant with a destination at home that accepts what comes away, on another chain, where a payment of 5 USDC came. `lose` restores a
 * backup that has lost the refund of that payment.
 */
async function startAcrossChains() {
  const home = await startChain();
  const away = await startChain({ chainId: 31_401 });
  const memory = makeEpochMemory();
  const options = { also: [{ chain: away }], assets: [home.asset], memory };
  const first = await makeMerchantFixture(home, options);
  const { merchantId, accountId, mode, destination } = first;
  const [registered] = unwrap(await listDestinations(first.deps, { accountId, merchantId, mode }));
  const accept = { actor: testActor, accountId, merchantId, mode, id: registered?.id ?? "", accept: true };
  unwrap(await setAcceptsOtherAssets(first.deps, accept));
  // What the treasury needs at home to pay for what comes away.
  await sendUsdc(home, await fundBuyer(home), home.keys.treasury.address, 10n * UNIT);
  await first.watch();
  const [{ id: deposit } = { id: 0 }] = await listExceptions(first.deps, 10);
  unwrap(await bookException(first.deps, { actor: testActor, id: deposit, as: "capital", note: "inventory" }));

  const workAway = async ({ deps, clock }: MerchantFixture) => {
    for (let round = 0; round < 2; round += 1) {
      await relayReady(deps, away.id, createSendHandlers(deps));
      await waitUntilMined(away);
      const signal = AbortSignal.abort();
      await watchChain(deps, { chain: away.id, signal, handlers: createBookingHandlers(deps) });
      clock.advance(5_000);
    }
  };
  const buyer = await fundBuyer(away);
  const paymentId = await first.create(500n);
  await first.verify(await first.attempt(paymentId, buyer, away));
  await workAway(first);
  expect(await first.settlementOf(paymentId)).toMatchObject({ asset: home.asset, amount: 5n * UNIT, converted: true });
  const had = await usdcBalance(away, buyer.address);
  const request = async ({ deps }: MerchantFixture, of = paymentId) =>
    unwrap(await refundPayment(deps, { actor: testActor, paymentId: of, mode })).refundId;
  const lose = async () => {
    await first.deps.epoch.tick();
    const restored = await restoreDatabase(
      first,
      home,
      async (lost) => {
        await workAway(lost);
        expect(await lost.refund(await request(lost))).toEqual(["begun"]);
        await workAway(lost);
        // The restored database is behind this count.
        await memory.raise(1_000);
      },
      options,
    );
    expect(await usdcBalance(away, buyer.address)).toBe(had + 5n * UNIT);
    return restored;
  };
  return { home, away, first, merchantId, destination, paymentId, buyer, had, workAway, request, lose };
}

test("a payout waits for a lost refund on another chain, also while that chain is not read again yet", async () => {
  const made = await startAcrossChains();
  const { home, away, merchantId, destination, paymentId, buyer, had, workAway, request, lose } = made;
  const restored = await lose();
  const { id } = await restored.settlementOf(paymentId);
  expect(await restored.settle(id)).toEqual(["watcher_behind"]);
  await workAway(restored);
  await restored.watch();
  expect(await restored.settle(id)).toEqual(["unrecorded_payout"]);

  expect(await restored.refund(await request(restored))).toEqual(["begun"]);
  await workAway(restored);
  expect(await unpaidOf(restored, merchantId)).toEqual([]);
  expect(await restored.db.selectFrom("refund").select("state").execute()).toEqual([{ state: "paid" }]);
  expect(await usdcBalance(away, buyer.address)).toBe(had + 5n * UNIT);
  expect(await usdcBalance(home, destination)).toBe(0n);
  expect(await balanceOf(restored, `payable:${merchantId}`, home.asset)).toBe(0n);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
});

test("a payout of money that came at home waits, too, for a lost refund on another chain that was drawn on it", async () => {
  const { home, first, merchantId, paymentId, workAway, lose } = await startAcrossChains();
  expect(await first.settle((await first.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await work(first);
  const laterId = await first.pay(await fundBuyer(home), 500n);
  const restored = await lose();
  const { id, converted } = await restored.settlementOf(laterId);
  expect(converted).toBe(false);
  expect(await restored.settle(id)).toEqual(["watcher_behind"]);
  await workAway(restored);
  await restored.watch();
  expect(await dispatchSettlements(restored.deps, [id])).toEqual(["unrecorded_payout"]);

  // The exception is on the other chain.
  const queue = restored.db.selectFrom("payout_queue").select("blocked_by").where("merchant_id", "=", merchantId);
  expect(await queue.where("kind", "=", "settlement").execute()).toEqual([{ blocked_by: "unrecorded_payout" }]);
  const [{ id: refund } = { id: 0 }] = await listExceptions(restored.deps, 10);
  unwrap(await bookException(restored.deps, { actor: testActor, id: refund, as: "losses", note: "we bear it" }));
  expect(await queue.where("kind", "=", "settlement").execute()).toEqual([{ blocked_by: null }]);
  expect(await restored.settle(id)).toEqual(["begun"]);
});

test("a refund of another payment waits for a lost refund on another chain, also while that is not read again yet", async () => {
  const { home, first, paymentId, workAway, request, lose } = await startAcrossChains();
  expect(await first.settle((await first.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await work(first);
  const laterId = await first.pay(await fundBuyer(home), 500n);
  const restored = await lose();
  const refundId = await request(restored, laterId);
  expect(await restored.refund(refundId)).toEqual(["watcher_behind"]);
  await workAway(restored);
  await restored.watch();
  expect(await restored.refund(refundId)).toEqual(["unrecorded_payout"]);
  expect(await restored.refund(await request(restored))).toEqual(["begun"]);
});
