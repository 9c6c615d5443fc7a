import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { dispatchSettlements, takePayouts } from "../../../../payments/payouts/dispatch-payouts.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { listEvmNetworks } from "../../../../runtime/networks/read-networks.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, networksFor, startChain, type TestChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import {
  balanceOf,
  expectReconciled,
  payOut,
  restoreDatabase,
  settlementsOf,
  work,
} from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import type { DepsOptions } from "../../../support/test-deps.ts";
import { mintTestToken, startTokenKinds, testTokenBalance } from "../../../support/token-kinds.ts";

const UNIT = 1_000_000n;

/** Returns the options of a deployment in which two endpoints must agree on each movement of one unit or more. */
async function requireTwoEndpoints(chain: TestChain): Promise<Pick<DepsOptions, "change" | "rpcUrls">> {
  const { url } = await startAlteringProxy({ target: chain.url });
  const [network] = listEvmNetworks(await networksFor(chain));
  const assets = network?.assets.map((asset) => ({ ...asset, agreementThreshold: String(UNIT) }));
  return { rpcUrls: [chain.url, url], change: { assets } };
}

/** Restores a backup after a lost refund of `sent` and begins a refund of `requested` for the same payment. */
async function restoreAfterRefund({ sent, requested }: { sent: bigint; requested: bigint }) {
  const chain = await startChain();
  const first = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain);
  const paymentId = await first.pay(buyer, 500n);
  const requestRefund = async (fixture: MerchantFixture, value: bigint) => {
    const amount = { unit: `caip19/${chain.asset}`, value };
    return unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live", amount })).refundId;
  };
  const before = await usdcBalance(chain, buyer.address);
  const restored = await restoreDatabase(first, chain, async (lost) => {
    expect(await lost.refund(await requestRefund(lost, sent))).toEqual(["begun"]);
    await lost.relay();
  });
  const refundId = await requestRefund(restored, requested);
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  const received = async () => (await usdcBalance(chain, buyer.address)) - before;
  return { chain, restored, refundId, received, merchantId: first.merchantId };
}

test("a restored database adopts a refund that sent more than requested, and the merchant's balance pays for the difference", async () => {
  const { chain, restored, refundId, received, merchantId } = await restoreAfterRefund({
    sent: 3n * UNIT,
    requested: 1n * UNIT,
  });
  for (let round = 0; round < 8; round += 1) await work(restored);
  const rows = await restored.db.selectFrom("refund").selectAll().execute();
  expect(rows).toMatchObject([{ id: refundId, amount: 3n * UNIT, state: "paid" }]);
  expect(await received()).toBe(3n * UNIT);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([{ amount: 2n * UNIT, state: "due" }]);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});

test.each([
  ["one endpoint", 1],
  ["two endpoints that must agree on it", 2],
])(
  "a restored database with %s adopts a payout that paid more than it owes and reports the difference as an exception",
  async (_what, endpoints) => {
    const chain = await startChain();
    const options = endpoints === 1 ? {} : await requireTwoEndpoints(chain);
    const first = await makeMerchantFixture(chain, options);
    await accumulatePayouts(first, { ms: 600_000 });
    await first.pay(await fundBuyer(chain), 100n);
    const { merchantId, accountId, destination } = first;

    const restored = await restoreDatabase(
      first,
      chain,
      async (lost) => {
        const forgotten = await makeMerchantFixture(chain, {
          ...options,
          databaseUrl: lost.databaseUrl,
          merchant: { accountId, merchantId },
        });
        await forgotten.watch();
        await forgotten.pay(await fundBuyer(chain), 200n);
        const [one] = await settlementsOf(lost, merchantId);
        expect(await forgotten.settle(one?.id ?? "")).toEqual(["begun"]);
        await forgotten.relay();
        await forgotten.db.destroy();
      },
      options,
    );
    expect(await usdcBalance(chain, destination)).toBe(3n * UNIT);
    await payOut(restored, merchantId);
    expect(await usdcBalance(chain, destination)).toBe(3n * UNIT);
    expect(await settlementsOf(restored, merchantId)).toMatchObject([{ number: 1, amount: 1n * UNIT, state: "paid" }]);
    const open = await listExceptions(restored.deps, 10);
    expect(open.map(({ kind, amount }) => [kind, amount]).sort()).toEqual([
      ["overpaid", -2n * UNIT],
      ["unknown", 2n * UNIT],
    ]);
    // The mismatch stays until an operator books it: here as the money of the payment that the backup lacks.
    const difference = async () => {
      const lines = unwrap(await reconcileChain(restored.deps, { chain: chain.id }));
      return lines.find(({ account }) => account === "treasury")?.difference;
    };
    expect(await difference()).toBe(-2n * UNIT);
    for (const { id } of open)
      unwrap(await bookException(restored.deps, { actor: testActor, id, as: "capital", note: "paid before" }));
    expect(await difference()).toBe(0n);
    expect(await balanceOf(restored, "operator_capital", chain.asset)).toBe(0n);
    expect(await balanceOf(restored, `payable:${merchantId}`, chain.asset)).toBe(0n);
    await expectReconciled(restored, chain);
  },
);

test("payments that one lost payout covered are not paid again by single payouts, whatever their numbers", async () => {
  const chain = await startChain();
  const first = await makeMerchantFixture(chain);
  const { merchantId, destination } = first;
  const payments: string[] = [];
  for (const cents of [100n, 200n]) {
    const id = await first.create(cents);
    await first.verify(await first.attempt(id, await fundBuyer(chain)));
    payments.push(id);
  }
  await first.relay();

  const restored = await restoreDatabase(first, chain, async (lost) => {
    // The lost database accumulated both payments in one settlement. The restored database settles each by itself.
    const [one] = await settlementsOf(lost, merchantId);
    await lost.db
      .updateTable("settlement")
      .set({ amount: 3n * UNIT })
      .where("id", "=", one?.id ?? "")
      .execute();
    expect(await lost.settle(one?.id ?? "")).toEqual(["begun"]);
    await lost.relay();
  });
  expect(await usdcBalance(chain, destination)).toBe(3n * UNIT);
  await payOut(restored, merchantId);
  expect(await usdcBalance(chain, destination)).toBe(3n * UNIT);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([
    { number: 1, amount: 3n * UNIT, state: "paid" },
    { number: 2, amount: 0n, state: "netted" },
  ]);
  for (const id of payments) expect((await restored.settlementOf(id)).state).toBe("paid");
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  expect(await balanceOf(restored, `payable:${merchantId}`, chain.asset)).toBe(0n);
  await expectReconciled(restored, chain);
});

test("payments of a settlement that a lost payout covered in part are reported with that payout, as far as it paid them in full", async () => {
  const chain = await startChain();
  const first = await makeMerchantFixture(chain);
  const { merchantId, destination } = first;
  const one = await first.pay(await fundBuyer(chain), 100n);
  await accumulatePayouts(first, { ms: 600_000 });
  const two = await first.pay(await fundBuyer(chain), 30n);
  const three = await first.pay(await fundBuyer(chain), 200n);

  const restored = await restoreDatabase(first, chain, async (lost) => {
    // The lost database grouped the payments in another way, and paid two units under the first number.
    const [settlement] = await settlementsOf(lost, merchantId);
    const id = settlement?.id ?? "";
    await lost.db
      .updateTable("settlement")
      .set({ amount: 2n * UNIT })
      .where("id", "=", id)
      .execute();
    expect(await lost.settle(id)).toEqual(["begun"]);
    await lost.relay();
  });
  await payOut(restored, merchantId);
  expect(await usdcBalance(chain, destination)).toBe(3_300_000n);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([
    { number: 1, amount: 2n * UNIT, state: "paid" },
    { number: 2, amount: 1_300_000n, state: "paid" },
  ]);
  const numbers = [one, two, three].map(async (id) => (await restored.settlementOf(id)).number);
  // Both payouts have paid the third payment, and it is reported with the one that completed it.
  expect(await Promise.all(numbers)).toEqual([1, 1, 2]);
  await expectReconciled(restored, chain);
});

test("a restored database adopts a lost payout to an earlier destination that an operator had booked as a loss", async () => {
  const chain = await startChain();
  const first = await makeMerchantFixture(chain);
  const { merchantId, destination } = first;
  const payment = await first.pay(await fundBuyer(chain), 100n);
  const restored = await restoreDatabase(first, chain, async (lost) => {
    await lost.settle((await lost.settlementOf(payment)).id);
    await lost.relay();
  });
  const [exception] = await listExceptions(restored.deps, 10);
  unwrap(
    await bookException(restored.deps, { actor: testActor, id: exception?.id ?? 0, as: "losses", note: "unexplained" }),
  );
  const elsewhere = newKey().address;
  await restored.db
    .updateTable("settlement_destination")
    .set({ destination: `${chain.id}:${elsewhere}` })
    .where("merchant_id", "=", merchantId)
    .execute();
  await payOut(restored, merchantId);
  expect(await usdcBalance(chain, elsewhere)).toBe(0n);
  expect(await restored.settlementOf(payment)).toMatchObject({
    state: "paid",
    destination: `${chain.id}:${destination.toLowerCase()}`,
  });
  expect(await balanceOf(restored, "losses", chain.asset)).toBe(0n);
  expect(restored.lines.some((line) => line.includes("with another amount or receiver"))).toBe(true);
  await expectReconciled(restored, chain);
});

test.each(["permit", "push"] as const)(
  "a restored database adopts a lost payout of a token of kind %s and does not repeat it",
  async (name) => {
    const kinds = await startTokenKinds();
    const { chain, change } = kinds;
    const asset = kinds.assets[name];
    const first = await makeMerchantFixture(chain, { change, assets: [asset, chain.asset] });
    const buyer = privateKeyToAccount(newKey().privateKey);
    await mintTestToken(chain, asset, buyer.address);
    // Other merchants' money.
    await mintTestToken(chain, asset, chain.keys.treasury.address);
    await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
    const payment = await first.pay(buyer, 100n);
    const { destination, merchantId } = first;
    const restored = await restoreDatabase(
      first,
      chain,
      async (lost) => {
        expect(await lost.settle((await lost.settlementOf(payment)).id)).toEqual(["begun"]);
        await lost.relay();
      },
      { change },
    );
    expect(await testTokenBalance(chain, asset, destination)).toBe(1n * UNIT);
    await payOut(restored, merchantId);
    expect(await testTokenBalance(chain, asset, destination)).toBe(1n * UNIT);
    expect(await restored.settlementOf(payment)).toMatchObject({ state: "paid", amount: 1n * UNIT });
    const left = (await listExceptions(restored.deps, 10)).filter(({ amount }) => amount < 0n);
    expect(left).toEqual([]);
    expect(await balanceOf(restored, "treasury", asset)).toBe(
      await testTokenBalance(chain, asset, chain.keys.treasury.address),
    );
  },
);

test("a lost payout of a lower amount changes no settlement before it is final, and its queue is due again then", async () => {
  const chain = await startChain();
  const change = { finality: { blocks: 4 } };
  const first = await makeMerchantFixture(chain, { change });
  const { merchantId, destination } = first;
  await accumulatePayouts(first, { ms: 600_000 });
  const confirm = async (fixture: MerchantFixture, blocks: number) => {
    await chain.client.mine({ blocks });
    await fixture.watch();
  };
  await first.pay(await fundBuyer(chain), 100n);
  await confirm(first, 4);
  const [settlement] = await settlementsOf(first, merchantId);
  const id = settlement?.id ?? "";
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      await chain.client.mine({ blocks: 4 });
      await lost.watch();
      expect(await lost.settle(id)).toEqual(["begun"]);
      await lost.relay();
    },
    { change },
  );
  // The restored database owes more than the lost database did.
  await restored.db
    .updateTable("settlement")
    .set({ amount: 3n * UNIT })
    .where("id", "=", id)
    .execute();
  await restored.db
    .updateTable("merchant_balance")
    .set({ amount: 3n * UNIT })
    .where("merchant_id", "=", merchantId)
    .execute();
  restored.clock.advance(600_000);
  await restored.watch();
  const isTaken = async () => (await takePayouts(restored.deps, "settlement")).some(({ ids }) => ids.includes(id));
  expect(await isTaken()).toBe(true);
  expect(await dispatchSettlements(restored.deps, [id])).toEqual(["unrecorded_payout"]);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([{ amount: 3n * UNIT, state: "due" }]);
  restored.clock.advance(5_000);
  await restored.watch();
  expect(await isTaken()).toBe(false);
  await confirm(restored, 4);
  expect(await isTaken()).toBe(true);
  expect(await dispatchSettlements(restored.deps, [id])).toEqual(["begun"]);
  await restored.relay();
  const payout = (await restored.transfers()).find(({ settlement_id }) => settlement_id === id);
  expect(payout).toMatchObject({ state: "included", amount: 1n * UNIT });
  expect(await settlementsOf(restored, merchantId)).toMatchObject([{ amount: 1n * UNIT }, { amount: 2n * UNIT }]);
  expect(await usdcBalance(chain, destination)).toBe(1n * UNIT);
});

/** Books a movement of the treasury with the nonce of a payout that has begun: a lost one that reached the chain later. */
async function insertLatePayout(
  fixture: MerchantFixture,
  of: { settlementId: string; amount: bigint; booked: boolean },
) {
  const transfer = (await fixture.transfers()).find(({ settlement_id }) => settlement_id === of.settlementId);
  if (!transfer) throw new Error("the settlement has no transfer");
  const { chain, token, payer, receiver, authorization_nonce } = transfer;
  const place = { chain, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  const movement = { token, payer, receiver, authorization_nonce, amount: of.amount, booked: of.booked };
  await insertObservations(fixture.db, [{ ...place, ...movement, transfer_id: null, observed_at: fixture.deps.now() }]);
}

test("a lost payout that reaches the chain after its settlement has begun is adopted once it is booked, and the rest is credited", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { db, merchantId } = fixture;
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await insertLatePayout(fixture, { settlementId: id, amount: 1n * UNIT, booked: false });
  await fixture.relay();
  const payout = async () => (await fixture.transfers()).find(({ settlement_id }) => settlement_id === id);
  expect(await payout()).toMatchObject({
    state: "ready",
    amount: 3n * UNIT,
    last_error: expect.stringContaining("nonce"),
  });
  expect(await settlementsOf(fixture, merchantId)).toMatchObject([{ amount: 3n * UNIT, state: "paying" }]);
  await db.updateTable("observation").set({ booked: true }).where("tx_hash", "=", "0x02").execute();
  fixture.clock.advance(61_000);
  await fixture.relay();
  expect(await payout()).toMatchObject({ state: "included", amount: 1n * UNIT });
  expect(await settlementsOf(fixture, merchantId)).toMatchObject([
    { amount: 1n * UNIT, state: "paying" },
    { amount: 2n * UNIT, state: "due" },
  ]);
  expect(await balanceOf(fixture, `payable:${merchantId}`, chain.asset)).toBe(-2n * UNIT);
  expect(await checkLedger(db, { since: undefined })).toEqual([]);
  expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
});

test("an observation with a payout's nonce stops the payout from being sent, even if the chain would accept it", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 100n));
  await fixture.settle(id);
  await insertLatePayout(fixture, { settlementId: id, amount: 7n, booked: false });
  await fixture.relay();
  const payout = (await fixture.transfers()).find(({ settlement_id }) => settlement_id === id);
  expect(payout).toMatchObject({ state: "ready", last_error: expect.stringContaining("not sent again") });
  expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
});
