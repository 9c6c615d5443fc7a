import { type Address, type Hex, pad } from "viem";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { listPaymentViews } from "../../../../payments/lifecycle/list-payments.ts";
import { findPaymentDetail } from "../../../../payments/lifecycle/read-payment.ts";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import { holdPayouts } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, fundBuyers, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const balanceOf = async (of: MerchantFixture) =>
  (
    await of.db
      .selectFrom("merchant_balance")
      .select("amount")
      .where("merchant_id", "=", of.merchantId)
      .executeTakeFirst()
  )?.amount;
const payoutsOf = (of: MerchantFixture, settlementId: string) =>
  of.db.selectFrom("transfer").selectAll().where("settlement_id", "=", settlementId).execute();
const register = (of: MerchantFixture, address: Address) =>
  of.db
    .updateTable("settlement_destination")
    .set({ destination: `${chain.id}:${address}` })
    .where("merchant_id", "=", of.merchantId)
    .execute();
/** Runs `happen` after the next payout is read and before it is signed. */
async function beforeNextSignature(of: MerchantFixture, happen: () => Promise<void>): Promise<void> {
  const { signer } = of.deps;
  let next: (() => Promise<void>) | undefined = happen;
  const signPayouts: typeof signer.signPayouts = async (payouts) => {
    const now = next;
    next = undefined;
    await now?.();
    return signer.signPayouts(payouts);
  };
  Object.assign(of.deps, { signer: { ...signer, signPayouts } });
}

describe("settlements", () => {
  test("a settlement pays the merchant what the buyer paid and shows where and when", async () => {
    const id = await fixture.pay(await fundBuyer(chain), 250n);
    const { id: settlementId } = await fixture.settlementOf(id);
    expect(fixture.enqueued.at(-1)).toMatchObject({
      queue: "settle",
      job: { data: { settlementIds: [settlementId] } },
    });
    const { accountId, merchantId } = fixture;
    const readViews = async () => {
      const args = {
        accountId,
        mode: "live",
        merchantIds: [merchantId],
        sortBy: "date",
        sortDir: "desc",
        limit: 1,
      } as const;
      return {
        one: unwrap(
          await findPaymentDetail(fixture.deps, { paymentId: id, mode: "live", merchant: { accountId, merchantId } }),
        ),
        listed: unwrap(await listPaymentViews(fixture.deps, args)).items[0],
      };
    };
    const amount = { unit: `caip19/${chain.asset}`, value: 2_500_000n };
    expect(await readViews()).toMatchObject({
      one: { settlement: null },
      listed: { paymentId: id, settlement: { settled: false, amount, txHash: null }, settledAt: null },
    });
    const before = await usdcBalance(chain, fixture.destination);
    expect(await fixture.settle(settlementId)).toEqual(["begun"]);
    await fixture.relay();
    await fixture.watch();
    expect((await usdcBalance(chain, fixture.destination)) - before).toBe(2_500_000n);
    expect(await fixture.settlementOf(id)).toMatchObject({
      state: "paid",
      amount: 2_500_000n,
      destination: `${chain.id}:${fixture.destination}`,
      paid_at: expect.any(Date),
      due_at: null,
    });
    const { one, listed } = await readViews();
    const txHash = one.settlement?.txId as Hex;
    const { logs } = await chain.client.getTransactionReceipt({ hash: txHash });
    expect(logs.map(({ topics }) => topics[2])).toContain(pad(fixture.destination).toLowerCase());
    expect(one).toMatchObject({ state: "succeeded", settlement: { amount } });
    expect(listed).toMatchObject({ settlement: { settled: true, amount, txHash }, settledAt: expect.any(Date) });
    expect(txHash).not.toBe(one.info?.txId);
  });

  test("a settlement that several processes begin concurrently and again later makes one transfer and debits the balance once", async () => {
    const id = await fixture.pay(await fundBuyer(chain));
    const { id: settlementId } = await fixture.settlementOf(id);
    const other = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, clock: fixture.clock });
    await other.watch();
    const outcomes = await Promise.all(
      [fixture, other, fixture, other, fixture].map((one) => one.settle(settlementId)),
    );
    expect(outcomes.flat()).toEqual(Array(5).fill("begun"));
    expect(await payoutsOf(fixture, settlementId)).toHaveLength(1);
    expect(await balanceOf(fixture)).toBe(0n);
    await fixture.relay();
    await fixture.watch();
    expect(await fixture.settle(settlementId)).toEqual(["begun"]);
    expect(await payoutsOf(fixture, settlementId)).toHaveLength(1);
  });

  test("a settlement goes to the destination registered when it begins, and a later change does not redirect it", async () => {
    const id = await fixture.pay(await fundBuyer(chain));
    const { id: settlementId } = await fixture.settlementOf(id);
    const [second, third] = [newKey().address, newKey().address];
    await register(fixture, second);
    await fixture.settle(settlementId);
    await register(fixture, third);
    await fixture.relay();
    await fixture.watch();
    expect(await usdcBalance(chain, second)).toBe(1_000_000n);
    expect(await usdcBalance(chain, third)).toBe(0n);
    expect((await fixture.settlementOf(id)).destination).toBe(`${chain.id}:${second}`);
    await register(fixture, fixture.destination);
  });

  test("a settlement without a destination waits and continues once the merchant has one", async () => {
    const bare = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const id = await bare.pay(await fundBuyer(chain));
    const { id: settlementId } = await bare.settlementOf(id);
    await bare.db.deleteFrom("settlement_destination").where("merchant_id", "=", bare.merchantId).execute();
    expect(await bare.settle(settlementId)).toEqual(["no_destination"]);
    expect(await bare.settlementOf(id)).toMatchObject({ state: "due" });
    expect(await balanceOf(bare)).toBe(1_000_000n);
    expect(await payoutsOf(bare, settlementId)).toEqual([]);

    await bare.addDestination();
    bare.clock.advance(60_000);
    await bare.watch();
    const owed = await takeDueWork(bare.deps, "settlements");
    expect(owed.flatMap(({ ids }) => ids)).toContain(settlementId);
    bare.clock.advance(-60_000);
    expect(await bare.settle(settlementId)).toEqual(["begun"]);
    await bare.relay();
    await bare.watch();
    expect(await usdcBalance(chain, bare.destination)).toBe(1_000_000n);
  });

  test("settlements of payments that are booked together have distinct numbers", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const ids = [await own.create(100n), await own.create(200n), await own.create(300n)];
    const buyers = await fundBuyers(chain, 3);
    await own.verify(...(await Promise.all(buyers.map((buyer, index) => own.attempt(ids[index] ?? "", buyer)))));
    await own.relay();
    await own.watch();
    const settlements = await Promise.all(ids.map((id) => own.settlementOf(id)));
    expect(settlements.map(({ amount }) => amount)).toEqual([1_000_000n, 2_000_000n, 3_000_000n]);
    expect(settlements.map(({ number }) => number).sort()).toEqual([1, 2, 3]);
  });

  test("a settlement that a refund reduces during signing is signed again and pays the remainder", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const other = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, clock: own.clock });
    // The merchant's other balance would cover the payout that was signed first.
    await own.pay(await fundBuyer(chain), 1_000n);
    const id = await own.pay(await fundBuyer(chain), 1_000n);
    const { id: settlementId } = await own.settlementOf(id);
    await other.watch();
    await beforeNextSignature(own, async () => {
      const amount = { unit: "iso4217/USD", value: 400n };
      const { refundId } = unwrap(
        await refundPayment(own.deps, { actor: testActor, paymentId: id, mode: "live", amount }),
      );
      expect(await other.refund(refundId)).toEqual(["begun"]);
    });
    await own.settle(settlementId);
    expect(await own.settlementOf(id)).toMatchObject({ state: "due", amount: 6_000_000n });
    expect(await payoutsOf(own, settlementId)).toEqual([]);
    await own.settle(settlementId);
    expect(await payoutsOf(own, settlementId)).toMatchObject([{ amount: 6_000_000n }]);
    await own.relay();
    await own.watch();
    expect(await usdcBalance(chain, own.destination)).toBe(6_000_000n);
    expect(await balanceOf(own)).toBe(10_000_000n);
  });

  test("a settlement whose merchant's payouts are held during signing pays nothing until they are released", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const id = await own.pay(await fundBuyer(chain), 500n);
    const { id: settlementId } = await own.settlementOf(id);
    const owner = { accountId: own.accountId, merchantId: own.merchantId, mode: own.mode, actor: testActor };
    await beforeNextSignature(own, async () => {
      unwrap(await holdPayouts(own.deps, { ...owner, hold: true }));
    });
    await own.settle(settlementId);
    expect(await own.settlementOf(id)).toMatchObject({ state: "due", destination: null });
    expect(await payoutsOf(own, settlementId)).toEqual([]);
    expect(await own.settle(settlementId)).toEqual(["held"]);
    unwrap(await holdPayouts(own.deps, { ...owner, hold: false }));
    expect(await own.settle(settlementId)).toEqual(["begun"]);
    await own.relay();
    await own.watch();
    expect(await usdcBalance(chain, own.destination)).toBe(5_000_000n);
  });

  test("a settlement that exceeds the merchant's balance pays nothing and does not delay other merchants", async () => {
    const poor = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const short = await poor.settlementOf(await poor.pay(await fundBuyer(chain)));
    const fine = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain)));
    await poor.db
      .updateTable("merchant_balance")
      .set({ amount: 999_999n })
      .where("merchant_id", "=", poor.merchantId)
      .execute();
    expect(await fixture.settle(short.id, fine.id)).toEqual(["balance_short", "begun"]);
    expect(await payoutsOf(poor, short.id)).toEqual([]);
    expect(await balanceOf(poor)).toBe(999_999n);
    const { state } = await poor.db
      .selectFrom("settlement")
      .select("state")
      .where("id", "=", short.id)
      .executeTakeFirstOrThrow();
    expect(state).toBe("due");
    expect(await payoutsOf(fixture, fine.id)).toHaveLength(1);
  });

  test("no process signs a settlement while the watcher is behind the head", async () => {
    const id = await fixture.pay(await fundBuyer(chain));
    const { id: settlementId } = await fixture.settlementOf(id);
    fixture.clock.advance(120_000);
    expect(await fixture.settle(settlementId)).toEqual(["watcher_behind"]);
    await fixture.watch();
    expect(await fixture.settle(settlementId)).toEqual(["begun"]);
  });

  test("a process that started after the watcher last reached the head signs no settlement, because its rows may be restored", async () => {
    const id = await fixture.pay(await fundBuyer(chain));
    const { id: settlementId } = await fixture.settlementOf(id);
    const fresh = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, clock: fixture.clock });
    expect(await fresh.settle(settlementId)).toEqual(["watcher_behind"]);
    await fresh.watch();
    expect(await fresh.settle(settlementId)).toEqual(["begun"]);
  });
});

test("the ledger of complete payments sums to zero and matches the chain payment by payment", async () => {
  const own = await startChain();
  const one = await makeMerchantFixture(own);
  const two = await makeMerchantFixture(own, { databaseUrl: one.databaseUrl });
  const buyers = await fundBuyers(own, 6);
  const ids: string[] = [];
  for (const [index, buyer] of buyers.entries())
    ids.push(await (index % 2 ? one : two).pay(buyer, 100n * BigInt(index + 1)));
  const settlements = await Promise.all(ids.map((id) => one.settlementOf(id)));
  // The last settlement stays due.
  await one.settle(...settlements.slice(0, 5).map(({ id }) => id));
  await one.relay();
  await one.watch();

  const entries = await one.db.selectFrom("ledger_entry").selectAll().execute();
  const sumOf = (account: string) =>
    entries.filter((entry) => entry.account === account).reduce((sum, { amount }) => sum + amount, 0n);
  expect(entries.reduce((sum, { amount }) => sum + amount, 0n)).toBe(0n);
  expect(sumOf("treasury")).toBe(await usdcBalance(own, own.keys.treasury.address));
  expect(sumOf("treasury")).toBe(6_000_000n);
  expect(sumOf("in_transit")).toBe(0n);
  expect(sumOf(`payable:${two.merchantId}`)).toBe(0n);
  expect(sumOf(`payable:${one.merchantId}`)).toBe(-6_000_000n);
  expect(await balanceOf(one)).toBe(6_000_000n);
  expect(await balanceOf(two)).toBe(0n);
  expect(await usdcBalance(own, two.destination)).toBe(1_000_000n + 3_000_000n + 5_000_000n);

  // Every booking of a movement names an existing log.
  const groups = await one.db.selectFrom("ledger_group").selectAll().where("tx_hash", "is not", null).execute();
  expect(groups.filter(({ kind }) => kind !== "gas")).toHaveLength(11);
  for (const group of groups) {
    const receipt = await own.client.getTransactionReceipt({ hash: group.tx_hash as `0x${string}` });
    expect(receipt.blockHash).toBe(group.block_id);
    if (group.kind !== "gas") expect(receipt.logs.map((log) => log.logIndex)).toContain(group.log_index);
  }
  for (const [index, id] of ids.entries()) {
    const { state, info } = await one.status(id);
    expect({ state, value: info?.optionAmount.value }).toEqual({
      state: "succeeded",
      value: 1_000_000n * BigInt(index + 1),
    });
  }
});
