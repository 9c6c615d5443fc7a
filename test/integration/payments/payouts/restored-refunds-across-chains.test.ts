import { expect, test } from "vitest";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { createSendHandlers } from "../../../../payments/lifecycle/relay-transfers.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { relayReady } from "../../../../transfers/evm/drive-lanes.ts";
import { watchChain } from "../../../../transfers/watch-pass.ts";
import { fundBuyer, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { balanceOf, restoreDatabase, unpaidOf } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeEpochMemory } from "../../../support/test-deps.ts";
import { waitUntilMined } from "../../../support/transfers-fixture.ts";

const UNIT = 1_000_000n;

test("a payout waits for a lost refund on another chain, also while that chain is not read again yet", async () => {
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
  const request = async ({ deps }: MerchantFixture) =>
    unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode })).refundId;
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
