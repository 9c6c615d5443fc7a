import type { PrivateKeyAccount } from "viem";
import { expect, test } from "vitest";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { sumEndedPayments } from "../../../../payments/maintenance/sum-payments.ts";
import { dispatchSettlements } from "../../../../payments/payouts/dispatch-payouts.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { captureStatements } from "../../../support/explain-statements.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import {
  balanceOf,
  expectReconciled,
  payOut,
  restoreDatabase,
  settlementsOf,
  unpaidOf,
  work,
} from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import { startTestSigner } from "../../../support/test-signer.ts";

const UNIT = 1_000_000n;

/** `accumulates`: the payment's payout still accumulates. `limited`: a signer with limits signs. */
type Lost = { parts: readonly bigint[]; settled?: boolean; accumulates?: boolean; limited?: boolean };

/**
 * Restores a backup that has lost refunds of these parts of a payment of 5 USDC. With `settled`, the payment was paid out before the backup,
 * and the refunds were drawn on a later payment of 7 USDC. A payment of 5 USDC is not paid yet.
 */
async function loseRefunds({ parts, settled = false, accumulates = false, limited = false }: Lost) {
  const chain = await startChain();
  const signing = limited ? await startTestSigner(chain) : undefined;
  const options = signing ? { signer: signing.signer } : {};
  const first = await makeMerchantFixture(chain, options);
  if (accumulates) await accumulatePayouts(first, { ms: 600_000 });
  const { merchantId, destination } = first;
  const buyer = await fundBuyer(chain);
  const paymentId = await first.pay(buyer, 500n);
  if (settled) {
    await payOut(first, merchantId);
    // The payer is a customer of the account from now on.
    await sumEndedPayments(first.deps, { atLeast: 1 });
  }
  const laterId = settled ? await first.pay(await fundBuyer(chain), 700n) : paymentId;
  const unpaidId = await first.create(500n);
  const had = await usdcBalance(chain, buyer.address);
  const request = async (of: MerchantFixture, units: bigint, payment = paymentId) => {
    const amount = { unit: `caip19/${chain.asset}`, value: units * UNIT };
    const query = { actor: testActor, paymentId: payment, mode: "live" as const, amount };
    return unwrap(await refundPayment(of.deps, query)).refundId;
  };
  const lose = async (lost: MerchantFixture) => {
    for (const units of parts) expect(await lost.refund(await request(lost, units))).toEqual(["begun"]);
    await lost.relay();
  };
  const restored = await restoreDatabase(first, chain, lose, options);
  const idsOf = async (id = merchantId) => (await unpaidOf(restored, id)).map((one) => one.id);
  return {
    ...{ chain, signing, restored, merchantId, destination, paymentId, unpaidId, buyer, idsOf },
    request: (units: bigint) => request(restored, units),
    /** Requests a refund of the payment of 7 USDC. */
    requestLater: (units: bigint) => request(restored, units, laterId),
    received: async () => ((await usdcBalance(chain, buyer.address)) - had) / UNIT,
    paidOut: async () => (await usdcBalance(chain, destination)) / UNIT,
  };
}

/** Makes a payment after the restore. */
async function payLater(fixture: MerchantFixture, paymentId: string, buyer: PrivateKeyAccount): Promise<void> {
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  // The lane first finds that the lost database has used its nonce.
  for (let round = 0; round < 3; round += 1) await work(fixture);
}

test.each([
  { parts: [5n], settled: false, earned: 5n, before: 0n },
  { parts: [2n], settled: false, accumulates: true, earned: 5n, before: 0n },
  { parts: [1n, 1n], settled: false, earned: 5n, before: 0n },
  { parts: [5n], settled: true, earned: 12n, before: 5n },
])(
  "a merchant is not paid what lost refunds of $parts have sent, and is paid the rest once they are requested again (settled before: $settled)",
  async ({ earned, before, ...of }) => {
    const made = await loseRefunds(of);
    const { chain, restored, merchantId, request, received, paidOut, idsOf } = made;
    const sent = of.parts.reduce((sum, units) => sum + units, 0n);
    await payOut(restored, merchantId);
    expect([await received(), await paidOut()]).toEqual([sent, before]);
    for (const units of of.parts) {
      expect(await restored.settle(...(await idsOf()))).toEqual(["unrecorded_payout"]);
      expect(await restored.refund(await request(units))).toEqual(["begun"]);
    }
    // What the merchant is owed beyond them begins before their adoption.
    expect(await restored.settle(...(await idsOf()))).toEqual(earned - sent > before ? ["begun"] : []);
    await payOut(restored, merchantId);
    expect([await received(), await paidOut()]).toEqual([sent, earned - sent]);
    expect(await balanceOf(restored, `payable:${merchantId}`, chain.asset)).toBe(0n);
    expect(await listExceptions(restored.deps, 10)).toEqual([]);
    expect(await restored.db.selectFrom("refund").select("state").execute()).toEqual(
      of.parts.map(() => ({ state: "paid" })),
    );
    await expectReconciled(restored, chain);
  },
);

test("a merchant who requests less than a lost refund has sent is paid what its payment has beyond it", async () => {
  const { chain, restored, merchantId, request, received, paidOut, idsOf } = await loseRefunds({ parts: [4n] });
  expect(await restored.refund(await request(2n))).toEqual(["begun"]);
  // Until the adoption, the balance shows three of the five, of which two are the buyer's.
  expect(await dispatchSettlements(restored.deps, await idsOf())).toEqual(["unrecorded_payout"]);
  await restored.relay();
  const queue = restored.db.selectFrom("payout_queue").select("blocked_by").where("merchant_id", "=", merchantId);
  expect(await queue.where("kind", "=", "settlement").execute()).toEqual([{ blocked_by: null }]);
  await payOut(restored, merchantId);
  expect([await received(), await paidOut()]).toEqual([4n, 1n]);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});

test("payouts of another merchant to whom the same buyer has paid do not wait for a lost refund", async () => {
  const { chain, restored, buyer, idsOf } = await loseRefunds({ parts: [5n] });
  const other = await makeMerchantFixture(chain, { databaseUrl: restored.databaseUrl });
  const theirs = await other.create(300n);
  await payLater(other, theirs, buyer);
  const { id } = await other.settlementOf(theirs);
  const [own = ""] = await idsOf();
  expect(await restored.settle(own, id)).toEqual(["unrecorded_payout", "begun"]);
  await other.relay();
  expect(await usdcBalance(chain, other.destination)).toBe(3n * UNIT);
});

test("a refund of another payment waits while its merchant's balance lacks what a lost refund has sent", async () => {
  const { chain, restored, merchantId, unpaidId, request, requestLater, received, paidOut } = await loseRefunds({
    parts: [5n],
    settled: true,
  });
  const refundId = await requestLater(7n);
  expect(await restored.refund(refundId)).toEqual(["unrecorded_payout"]);
  expect(await restored.refund(await request(5n))).toEqual(["begun"]);
  await work(restored);
  // Two of the seven are left.
  expect(await restored.refund(refundId)).toEqual(["balance_short"]);
  await payLater(restored, unpaidId, await fundBuyer(chain));
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  await payOut(restored, merchantId);
  expect([await received(), await paidOut()]).toEqual([5n, 5n]);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([
    { state: "paid" },
    { state: "netted" },
    { state: "netted" },
  ]);
  await expectReconciled(restored, chain);
});

test("refunds of other payments that begin together take nothing of what a lost refund has sent", async () => {
  const { restored, request, requestLater } = await loseRefunds({ parts: [5n], settled: true });
  const refunds = [await requestLater(2n), await requestLater(2n)];
  expect(await restored.refund(...refunds)).toEqual(["begun", "unrecorded_payout"]);
  expect(await restored.refund(await request(5n))).toEqual(["begun"]);
});

test("a refund takes nothing of what a lost refund has sent, although a refund before it is held and both exceed the balance", async () => {
  const { restored, buyer, request, requestLater } = await loseRefunds({ parts: [2n], settled: true });
  const lost = await request(2n);
  const refunds = [await request(3n), await requestLater(7n)];
  restored.screened.add(buyer.address.toLowerCase());
  expect(await restored.refund(...refunds)).toEqual(["not_served", "unrecorded_payout"]);
  restored.screened.clear();
  expect(await restored.refund(lost)).toEqual(["begun"]);
});

test("a refund that the signer refuses keeps no other one waiting that the balance covers beside a lost refund", async () => {
  const { restored, signing, requestLater } = await loseRefunds({ parts: [2n], settled: true, limited: true });
  const refunds = [await requestLater(4n), await requestLater(3n)];
  await signing?.setLimits({ asset: { perPayout: String(3n * UNIT) } });
  expect(await restored.refund(...refunds)).toEqual(["limit_payout", "begun"]);
});

test("a lost refund that is requested again begins before a refund of another payment that was requested earlier", async () => {
  const { restored, request, requestLater } = await loseRefunds({ parts: [5n], settled: true });
  const refunds = [await requestLater(7n), await request(5n)];
  // Two of the seven are left.
  expect(await restored.refund(...refunds)).toEqual(["balance_short", "begun"]);
});

test("a refund that the balance covers beside a lost refund begins after it in the same run", async () => {
  const { restored, request, requestLater } = await loseRefunds({ parts: [2n], settled: true });
  const refunds = [await request(2n), await requestLater(5n)];
  expect(await restored.refund(...refunds)).toEqual(["begun", "begun"]);
});

test("payouts continue when a reorg takes the lost refund back", async () => {
  const { restored, idsOf } = await loseRefunds({ parts: [5n] });
  expect(await restored.settle(...(await idsOf()))).toEqual(["unrecorded_payout"]);
  await restored.db.updateTable("observation").set({ orphaned: true }).where("transfer_id", "is", null).execute();
  expect(await restored.settle(...(await idsOf()))).toEqual(["begun"]);
});

test("payouts continue when an operator books a lost refund as a loss, and the queue names the obstacle until then", async () => {
  const { restored, merchantId, idsOf, paidOut } = await loseRefunds({ parts: [5n] });
  expect(await dispatchSettlements(restored.deps, await idsOf())).toEqual(["unrecorded_payout"]);
  const queue = restored.db.selectFrom("payout_queue").select("blocked_by").where("merchant_id", "=", merchantId);
  expect(await queue.execute()).toEqual([{ blocked_by: "unrecorded_payout" }]);
  await work(restored);
  const [{ id } = { id: 0 }] = await listExceptions(restored.deps, 10);
  unwrap(await bookException(restored.deps, { actor: testActor, id, as: "losses", note: "the merchant is gone" }));
  expect(await queue.execute()).toEqual([{ blocked_by: null }]);
  await payOut(restored, merchantId);
  expect(await paidOut()).toBe(5n);
});

test("payouts read no customers once operators have resolved what left the treasury without a row", async () => {
  const { restored, idsOf } = await loseRefunds({ parts: [5n] });
  await work(restored);
  const [{ id } = { id: 0 }] = await listExceptions(restored.deps, 10);
  unwrap(await bookException(restored.deps, { actor: testActor, id, as: "losses", note: "the merchant is gone" }));
  const ids = await idsOf();
  const sent = await captureStatements(async () => expect(await restored.settle(...ids)).toEqual(["begun"]));
  expect(sent.filter(({ text }) => /from customer /.test(text))).toEqual([]);
});
