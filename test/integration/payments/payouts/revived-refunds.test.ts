import { expect, test } from "vitest";
import { deriveNonce, refundKey } from "../../../../chains/natural-key.ts";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import type { GaugeDeps } from "../../../../payments/maintenance/gauge-deps.ts";
import { dispatchRefunds } from "../../../../payments/payouts/dispatch-payouts.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { withdrawRefund } from "../../../../payments/payouts/withdraw-refunds.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { testActor } from "../../../support/test-actor.ts";

const UNIT = 1_000_000n;

/** Returns the number of queues of refunds for which the gauge says that the database lacks a payout. */
async function countUnrecorded(deps: GaugeDeps): Promise<number> {
  const { blocked } = await readSystemStatus(deps);
  return blocked
    .filter(({ kind, obstacle }) => kind === "refund" && obstacle === "unrecorded_payout")
    .reduce((sum, { count }) => sum + count, 0);
}

/** Makes a payment of 100 USD. `before` is what its buyer has left, and `request` asks for a refund of it. */
async function payOnce() {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.pay(buyer, 10_000n);
  const before = await usdcBalance(chain, buyer.address);
  const request = async (cents: bigint) => {
    const amount = { unit: "iso4217/USD", value: cents };
    const refund = { actor: testActor, paymentId, mode: "live" as const, amount };
    return unwrap(await refundPayment(fixture.deps, refund)).refundId;
  };
  return { chain, fixture, buyer, paymentId, before, request };
}

test("a refund that was sent before a restore is adopted, although the chain shows a later one of its payment too", async () => {
  const { chain, fixture, buyer, paymentId, before, request } = await payOnce();
  const { db, deps, merchantId } = fixture;
  const first = await request(3_000n);
  // The lost database sent it, and a second one of 20 USDC.
  const payment = (await fixture.transfers()).find(({ purpose }) => purpose === "payment");
  if (!payment) throw new Error("the payment has no transfer");
  const sent = [3_000n, 2_000n].map((cents, index) => ({
    ...{ chain: chain.id, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: index },
    ...{ token: payment.token, payer: payment.receiver, receiver: payment.payer, amount: cents * 10_000n },
    authorization_nonce: deriveNonce(deps.networks.deployment, refundKey({ merchantId, paymentId, number: index + 1 })),
    transfer_id: null,
    observed_at: deps.now(),
  }));
  await insertObservations(db, sent);
  expect(await dispatchRefunds(deps, [first])).toEqual(["begun"]);
  await fixture.relay();
  const second = await request(2_000n);
  expect(await dispatchRefunds(deps, [second])).toEqual(["begun"]);
  await fixture.relay();
  const refunds = (await fixture.transfers()).filter(({ purpose }) => purpose === "refund");
  expect(refunds.map(({ refund_id, state }) => [refund_id, state])).toEqual([
    [first, "included"],
    [second, "included"],
  ]);
  expect(await usdcBalance(chain, buyer.address)).toBe(before);
});

test("a refund that a restore has revived waits while the chain shows its replacement, until it is withdrawn", async () => {
  const { chain, fixture, buyer, paymentId, before, request } = await payOnce();
  const { db, deps, merchantId } = fixture;
  const revived = await request(3_000n);
  // The lost database withdrew it, and sent a second refund of 20 USDC.
  const nonce = deriveNonce(deps.networks.deployment, refundKey({ merchantId, paymentId, number: 2 }));
  const payment = (await fixture.transfers()).find(({ purpose }) => purpose === "payment");
  if (!payment) throw new Error("the payment has no transfer");
  const place = { chain: chain.id, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  const movement = { token: payment.token, payer: payment.receiver, receiver: payment.payer, amount: 20n * UNIT };
  await insertObservations(db, [
    { ...place, ...movement, authorization_nonce: nonce, transfer_id: null, observed_at: deps.now() },
  ]);
  const payouts = async () => (await fixture.transfers()).filter(({ purpose }) => purpose === "refund");

  // A refund of another payment does not wait behind it.
  const other = await fixture.pay(await fundBuyer(chain), 100n);
  const ofOther = unwrap(await refundPayment(deps, { actor: testActor, paymentId: other, mode: "live" })).refundId;
  expect(await dispatchRefunds(deps, [revived, ofOther])).toEqual(["unrecorded_payout", "begun"]);
  expect(await payouts()).toMatchObject([{ refund_id: ofOther }]);
  const rows = await db.selectFrom("refund").select("due_retries").where("id", "=", revived).execute();
  expect(rows).toEqual([{ due_retries: 1 }]);

  expect(await dispatchRefunds(deps, [revived])).toEqual(["unrecorded_payout"]);
  expect(await countUnrecorded(fixture.deps)).toBe(1);

  unwrap(await withdrawRefund(deps, { actor: testActor, refundId: revived }));
  const replacement = await request(2_000n);
  expect(await dispatchRefunds(deps, [replacement])).toEqual(["begun"]);
  await fixture.relay();
  const adopted = (await payouts()).find(({ refund_id }) => refund_id === replacement);
  expect(adopted).toMatchObject({ state: "included", amount: 20n * UNIT });
  expect(await countUnrecorded(fixture.deps)).toBe(0);
  expect(await usdcBalance(chain, buyer.address)).toBe(before);
});

test("a refund that another worker has split while it was signed does not begin with its former amount", async () => {
  const { chain, fixture, buyer, paymentId, before, request } = await payOnce();
  const { db, deps, merchantId } = fixture;
  const id = await request(3_000n);
  const payment = (await fixture.transfers()).find(({ purpose }) => purpose === "payment");
  if (!payment) throw new Error("the payment has no transfer");
  const place = { chain: chain.id, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  const movement = { token: payment.token, payer: payment.receiver, receiver: payment.payer, amount: 20n * UNIT };
  const nonce = deriveNonce(deps.networks.deployment, refundKey({ merchantId, paymentId, number: 1 }));
  const { signer } = deps;
  // While this worker waits for the signature, the lost refund of 20 USDC is booked, and another worker splits the refund.
  deps.signer = {
    ...signer,
    signPayouts: async (payouts) => {
      deps.signer = signer;
      await insertObservations(db, [
        {
          ...place,
          ...movement,
          authorization_nonce: nonce,
          booked: true,
          transfer_id: null,
          observed_at: deps.now(),
        },
      ]);
      expect(
        await dispatchRefunds(
          {
            ...deps,
            signer: {
              ...signer,
              signPayouts: async () => {
                throw new Error("killed");
              },
            },
          },
          [id],
        ).catch(() => "killed"),
      ).toBe("killed");
      return signer.signPayouts(payouts);
    },
  };
  const refunds = () => db.selectFrom("refund").selectAll().orderBy("number").execute();
  await dispatchRefunds(deps, [id]);
  expect(await refunds()).toMatchObject([
    { amount: 20n * UNIT, state: "due" },
    { number: 2, amount: 10n * UNIT, state: "due" },
  ]);
  expect(
    await dispatchRefunds(
      deps,
      (await refunds()).map((one) => one.id),
    ),
  ).toEqual(["begun", "begun"]);
  await fixture.relay();
  expect(await refunds()).toMatchObject([
    { amount: 20n * UNIT, state: "paying" },
    { amount: 10n * UNIT, state: "paying" },
  ]);
  expect(await usdcBalance(chain, buyer.address)).toBe(before + 10n * UNIT);
  expect(await checkLedger(db, { since: undefined })).toEqual([]);
});
