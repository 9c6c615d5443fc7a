import { sql } from "kysely";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { readPaymentReport } from "../../../../payments/maintenance/payment-report.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { findRefundView } from "../../../../payments/payouts/find-refunds.ts";
import { type RefundAmount, refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, fundBuyers, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { copyDatabase } from "../../../support/test-database.ts";
import { mintTestToken, startTokenKinds, testTokenBalance } from "../../../support/token-kinds.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const UNIT = 1_000_000n;

const requestRefund = (of: MerchantFixture, paymentId: string, amount?: RefundAmount) =>
  refundPayment(of.deps, { actor: testActor, paymentId, mode: of.mode, amount });
/** Requests a refund, begins it if possible, relays it and confirms it. Returns its id and the outcome of the begin. */
async function refund(of: MerchantFixture, paymentId: string, amount?: RefundAmount) {
  const { refundId } = unwrap(await requestRefund(of, paymentId, amount));
  const [outcome] = await of.refund(refundId);
  await of.relay();
  await of.watch();
  return { refundId, outcome };
}
const rowOf = (of: MerchantFixture, id: string) =>
  of.db.selectFrom("refund").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
const payoutsOf = (of: MerchantFixture, refundId: string) =>
  of.db.selectFrom("transfer").selectAll().where("refund_id", "=", refundId).execute();
async function settle(of: MerchantFixture, paymentId: string) {
  const outcome = await of.settle((await of.settlementOf(paymentId)).id);
  await of.relay();
  await of.watch();
  return outcome;
}
/** Expects each merchant's balance to equal its settlements that have not begun, and its ledger account. */
async function expectConsistentBalances(of: MerchantFixture) {
  const { rows } = await sql<{ owed: bigint; settling: bigint; booked: bigint }>`
    select b.amount as owed,
      coalesce((select sum(amount) from settlement s
        where s.merchant_id = b.merchant_id and s.asset = b.asset and s.state in ('due', 'accumulating')), 0) as settling,
      coalesce((select -sum(amount) from ledger_day d
        where d.account = 'payable:' || b.merchant_id and d.asset = b.asset), 0) as booked
    from merchant_balance b`.execute(of.db);
  for (const { owed, settling, booked } of rows) expect([settling, booked]).toEqual([owed, owed]);
}

describe("refunds", () => {
  test("a refund before the payout returns the money to its payer, and the merchant receives nothing of it", async () => {
    const buyer = await fundBuyer(chain);
    const before = await usdcBalance(chain, fixture.destination);
    const paymentId = await fixture.pay(buyer, 250n);
    const { refundId } = await refund(fixture, paymentId);
    expect(await usdcBalance(chain, buyer.address)).toBe(1_000_000_000n);
    const [payout] = await payoutsOf(fixture, refundId);
    const booking = fixture.db
      .selectFrom("ledger_group")
      .select("tx_hash")
      .where("subject", "=", payout?.id ?? "");
    const { tx_hash: txId } = await booking.where("kind", "=", "refund_paid").executeTakeFirstOrThrow();
    expect(unwrap(await findRefundView(fixture.deps, { refundId }))).toMatchObject({
      status: "succeeded",
      amount: 2_500_000n,
      receiver: `${chain.id}:${buyer.address}`,
      isRecordOnly: false,
      txId,
      succeededAt: expect.any(Date),
    });
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "netted", amount: 0n, due_at: null });
    const report = await readPaymentReport(fixture.deps, paymentId);
    expect(report?.transfers.map(({ purpose, state }) => [purpose, state])).toContainEqual(["refund", "confirmed"]);
    expect(report?.moves.map(({ machine, to }) => `${machine} ${to}`)).toContain("refund paid");
    expect(report?.ledger.map(({ kind }) => kind)).toContain("refund_paid");
    await settle(fixture, paymentId);
    expect(await usdcBalance(chain, fixture.destination)).toBe(before);
    await expectConsistentBalances(fixture);
  });

  test("a refund after the payout waits for its merchant's next payments, and that merchant's payouts wait behind it", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const [buyer, next, third] = await fundBuyers(chain, 3);
    if (!buyer || !next || !third) throw new Error("no buyers");
    const paid = await own.pay(buyer, 300n);
    await settle(own, paid);
    const { refundId, outcome } = await refund(own, paid);
    expect(outcome).toBe("balance_short");

    const small = await own.pay(next, 100n);
    expect(await settle(own, small)).toEqual(["refund_pending"]);
    expect(own.enqueued.at(-1)).toMatchObject({ queue: "refund", job: { data: { refundIds: [refundId] } } });
    expect(await own.refund(refundId)).toEqual(["balance_short"]);
    expect((await own.settlementOf(small)).amount).toBe(UNIT);

    const large = await own.pay(third, 500n);
    expect(await own.refund(refundId)).toEqual(["begun"]);
    expect(await own.settlementOf(small)).toMatchObject({ state: "netted" });
    expect(await settle(own, large)).toEqual(["begun"]);
    expect(await usdcBalance(chain, buyer.address)).toBe(1_000n * UNIT);
    // The merchant received nine in all and gave three back.
    expect(await usdcBalance(chain, own.destination)).toBe(3n * UNIT + 3n * UNIT);
    await expectConsistentBalances(own);
  });

  test("a refund never uses another merchant's money", async () => {
    const rich = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const poor = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    await rich.pay(await fundBuyer(chain), 900n);
    const paymentId = await poor.pay(await fundBuyer(chain), 100n);
    await settle(poor, paymentId);
    expect(await refund(poor, paymentId)).toMatchObject({ outcome: "balance_short" });
    await expectConsistentBalances(fixture);
    expect(await usdcBalance(chain, chain.keys.treasury.address)).toBeGreaterThanOrEqual(9n * UNIT);
  });

  test("a refund that several processes begin concurrently and again later makes one transfer", async () => {
    const paymentId = await fixture.pay(await fundBuyer(chain));
    const { refundId } = unwrap(await requestRefund(fixture, paymentId));
    const other = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, clock: fixture.clock });
    await other.watch();
    await Promise.all([fixture, other, fixture, other, fixture].map((one) => one.refund(refundId)));
    await fixture.relay();
    await fixture.watch();
    expect(await fixture.refund(refundId)).toEqual(["begun"]);
    expect(await payoutsOf(fixture, refundId)).toHaveLength(1);
    await expectConsistentBalances(fixture);
  });

  test("a refund that races its payment's payout never duplicates the money", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const buyers = await fundBuyers(chain, 6);
    const paymentIds = [];
    for (const buyer of buyers) paymentIds.push(await own.pay(buyer));
    const refundIds = await Promise.all(paymentIds.map(async (id) => unwrap(await requestRefund(own, id)).refundId));
    const settlements = await Promise.all(paymentIds.map((id) => own.settlementOf(id)));
    await own.db.updateTable("refund").set({ due_at: null }).where("id", "in", refundIds).execute();
    await Promise.all([...refundIds.map((id) => own.refund(id)), ...settlements.map(({ id }) => own.settle(id))]);
    await own.relay();
    await own.watch();
    await expectConsistentBalances(own);
    const back = await Promise.all(buyers.map(({ address }) => usdcBalance(chain, address)));
    expect(back).toEqual(buyers.map(() => 1_000n * UNIT));
    expect(await usdcBalance(chain, own.destination)).toBe(0n);
  });

  test("concurrent refunds never exceed what the payment received, and a further refund is refused", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const open = await own.create();
    expect(await requestRefund(own, open)).toMatchObject({ code: "payment_not_succeeded" });
    const paymentId = await own.pay(await fundBuyer(chain), 1_000n);
    const cents = (value: bigint) => ({ unit: "iso4217/USD", value });
    const answers = await Promise.all(Array.from({ length: 10 }, () => requestRefund(own, paymentId, cents(300n))));
    expect(answers.filter(({ ok }) => ok)).toHaveLength(3);
    for (const one of answers) if (!one.ok) expect(one.code).toBe("params_validation");
    expect(await requestRefund(own, paymentId, { unit: "iso4217/EUR", value: 1n })).toMatchObject({
      code: "params_validation",
    });
    const last = unwrap(await requestRefund(own, paymentId));
    expect((await rowOf(own, last.refundId)).amount).toBe(UNIT);
    expect(await requestRefund(own, paymentId)).toMatchObject({ code: "already_refunded" });
    expect(await requestRefund(own, paymentId, cents(1n))).toMatchObject({ code: "already_refunded" });
  });

  test("partial refunds are sent in the payment's currency or in its asset", async () => {
    const buyer = await fundBuyer(chain);
    const paymentId = await fixture.pay(buyer, 1_000n);
    const had = await usdcBalance(chain, buyer.address);
    await refund(fixture, paymentId, { unit: "iso4217/USD", value: 250n });
    await refund(fixture, paymentId, { unit: `caip19/${chain.asset}`, value: 1n });
    expect((await usdcBalance(chain, buyer.address)) - had).toBe(2_500_001n);
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "due", amount: 7_499_999n });
    const before = await usdcBalance(chain, fixture.destination);
    await settle(fixture, paymentId);
    expect((await usdcBalance(chain, fixture.destination)) - before).toBe(7_499_999n);
    await expectConsistentBalances(fixture);
  });

  test("a refund to a screened account is held and does not delay payouts", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const [buyer, next] = await fundBuyers(chain, 2);
    if (!buyer || !next) throw new Error("no buyers");
    const paymentId = await own.pay(buyer);
    own.screened.add(buyer.address.toLowerCase());
    expect(await refund(own, paymentId)).toMatchObject({ outcome: "not_served" });
    const other = await own.pay(next);
    expect(await settle(own, other)).toEqual(["begun"]);
    expect(await usdcBalance(chain, buyer.address)).toBe(999n * UNIT);
  });

  test("a refund does not begin while the watcher is behind the head", async () => {
    const paymentId = await fixture.pay(await fundBuyer(chain));
    const { refundId } = unwrap(await requestRefund(fixture, paymentId));
    fixture.clock.advance(120_000);
    expect(await fixture.refund(refundId)).toEqual(["watcher_behind"]);
    await fixture.watch();
    expect(await fixture.refund(refundId)).toEqual(["begun"]);
  });

  test("a refund of a test payment is marked and moves no money", async () => {
    const testing = await makeMerchantFixture(chain, { mode: "test" });
    const paymentId = await testing.create();
    await testing.verify(await testing.attempt(paymentId, await fundBuyer(chain)));
    const { refundId } = unwrap(await requestRefund(testing, paymentId));
    expect(await rowOf(testing, refundId)).toMatchObject({ state: "marked", due_at: null });
    expect(testing.enqueued.filter(({ queue }) => queue === "refund")).toEqual([]);
    expect(await requestRefund(testing, paymentId)).toMatchObject({ code: "already_refunded" });
  });
});

test("a token without EIP-3009 is refunded through the Disburser", async () => {
  const kinds = await startTokenKinds();
  const own = await makeMerchantFixture(kinds.chain, { change: kinds.change, assets: Object.values(kinds.assets) });
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(kinds.chain, kinds.assets.permit, buyer.address);
  const paymentId = await own.pay(buyer);
  expect(await testTokenBalance(kinds.chain, kinds.assets.permit, buyer.address)).toBe(999n * UNIT);
  const { refundId } = await refund(own, paymentId);
  expect(await rowOf(own, refundId)).toMatchObject({ state: "paid" });
  expect(await payoutsOf(own, refundId)).toMatchObject([{ kind: "disburse" }]);
  expect(await testTokenBalance(kinds.chain, kinds.assets.permit, buyer.address)).toBe(1_000n * UNIT);
});

test("a merchant that repeatedly pays itself, is paid out and refunds ends with its initial balance", async () => {
  const own = await startChain();
  const honest = await makeMerchantFixture(own);
  await honest.pay(await fundBuyer(own), 5_000n);
  const purse = await fundBuyer(own, 100n * UNIT);
  const { id: merchantId } = await createMerchant(honest.deps, {
    actor: testActor,
    accountId: honest.accountId,
    mode: "live",
    name: "Loop",
    email: "loop@example.test",
  });
  const settlements = [{ asset: own.asset, destination: `${own.id}:${purse.address}` }];
  unwrap(
    await addDestinations(honest.deps, {
      actor: testActor,
      accountId: honest.accountId,
      mode: "live",
      merchantId,
      settlements,
    }),
  );
  const open: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    const paymentId = await honest.create(1_000n, { merchantId });
    await honest.verify(await honest.attempt(paymentId, purse));
    await honest.relay();
    await honest.watch();
    const { id: settlementId } = await honest.settlementOf(paymentId);
    if (round % 2) await honest.settle(settlementId);
    open.push(unwrap(await requestRefund(honest, paymentId)).refundId);
    await honest.refund(...open);
    await honest.settle(settlementId);
    await honest.relay();
    await honest.watch();
    // Its wallet and its merchant balance together never exceed what it started with.
    const balance = await honest.db
      .selectFrom("merchant_balance")
      .select("amount")
      .where("merchant_id", "=", merchantId)
      .executeTakeFirst();
    expect((await usdcBalance(own, purse.address)) + (balance?.amount ?? 0n)).toBe(100n * UNIT);
  }
  expect(await usdcBalance(own, own.keys.treasury.address)).toBe(
    50n * UNIT + (100n * UNIT - (await usdcBalance(own, purse.address))),
  );
  await expectConsistentBalances(honest);
});

test("a deployment restored from a backup does not resend a refund that was sent after the backup", async () => {
  const own = await startChain();
  const change = { finality: { blocks: 3 } };
  const first = await makeMerchantFixture(own, { change });
  const buyer = await fundBuyer(own);
  const paymentId = await first.pay(buyer);
  await own.client.mine({ blocks: 2 });
  await first.watch();
  const { refundId } = unwrap(await requestRefund(first, paymentId));
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);

  const lost = await makeMerchantFixture(own, { change, databaseUrl: first.databaseUrl });
  await lost.watch();
  expect(await lost.refund(refundId)).toEqual(["begun"]);
  await lost.relay();
  expect(await usdcBalance(own, buyer.address)).toBe(1_000n * UNIT);

  const restored = await makeMerchantFixture(own, { change, databaseUrl: backup });
  await restored.watch();
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  await restored.relay();
  await own.client.mine({ blocks: 2 });
  await restored.watch();
  expect(await rowOf(restored, refundId)).toMatchObject({ state: "paid" });
  expect(await usdcBalance(own, buyer.address)).toBe(1_000n * UNIT);
  await expectConsistentBalances(restored);
});
