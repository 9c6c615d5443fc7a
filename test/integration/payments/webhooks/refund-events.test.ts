import { expect, test } from "vitest";
import { findRefundView } from "../../../../payments/payouts/find-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { withdrawRefund } from "../../../../payments/payouts/withdraw-refunds.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeWebhookFixture, verifyReceivedWebhook } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();

/** Returns a shop with a paid payment, and a function that requests a refund of it. */
async function openPaidShop() {
  const shop = await makeWebhookFixture(chain);
  const { fixture, endpoint } = shop;
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.pay(buyer, 250n);
  const refund = async () =>
    unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: fixture.mode })).refundId;
  /** Delivers what is due, and returns the events of refunds that have arrived so far. */
  const arrived = async () => {
    await shop.deliver();
    return endpoint.arrivals.filter(({ event }) => event.type.startsWith("refund."));
  };
  return { ...shop, buyer, paymentId, refund, arrived };
}

test("a refund's events arrive once each, correctly signed, each with a snapshot of its moment", async () => {
  const { fixture, buyer, paymentId, secret, refund, arrived } = await openPaidShop();
  const refundId = await refund();
  const [created] = await arrived();
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  const events = await arrived();
  expect(events.map(({ event }) => event.type)).toEqual(["refund.created", "refund.succeeded"]);
  for (const arrival of events) expect(verifyReceivedWebhook(secret, arrival)).toEqual(arrival.event);
  const view = unwrap(await findRefundView(fixture.deps, { refundId }));
  const snapshot = {
    refund_id: refundId,
    refund_state_version: 0,
    payment_id: paymentId,
    merchant_id: fixture.merchantId,
    live: true,
    reference_id: null,
    status: "pending",
    reason: null,
    amount: { unit: `caip19/${chain.asset}`, value: "2500000" },
    receiver_caip10: `${chain.id}:${buyer.address}`,
    is_record_only: false,
    created_at: view.createdAt.toISOString(),
    held: null,
    success: null,
    failed: null,
  };
  expect(created?.event.data).toEqual(snapshot);
  expect(events[1]?.event.data).toEqual({
    ...snapshot,
    refund_state_version: 2,
    status: "succeeded",
    success: { succeeded_at: view.succeededAt?.toISOString(), tx_id: view.txId },
  });
});

test("a refund that is held and withdrawn is reported as held and as failed, with its reasons", async () => {
  const { fixture, buyer, refund, arrived } = await openPaidShop();
  fixture.screened.add(buyer.address.toLowerCase());
  const refundId = await refund();
  expect(await fixture.refund(refundId)).toEqual(["not_served"]);
  unwrap(await withdrawRefund(fixture.deps, { actor: testActor, refundId }));
  const events = await arrived();
  const summarize = ({ event: { type, data } }: (typeof events)[number]) =>
    [type, data["refund_state_version"], data["status"], data["reason"]] as const;
  expect(events.map(summarize)).toEqual([
    ["refund.created", 0, "pending", null],
    ["refund.held", 1, "held", "screening"],
    ["refund.failed", 2, "failed", "withdrawn"],
  ]);
});

test("a change of a refund and its event commit together or not at all", async () => {
  const { fixture, paymentId, refund, deliveries } = await openPaidShop();
  await fixture.db.schema.alterTable("webhook_delivery").renameTo("webhook_delivery_away").execute();
  await expect(refund()).rejects.toThrow("webhook_delivery");
  await fixture.db.schema.alterTable("webhook_delivery_away").renameTo("webhook_delivery").execute();
  const refunds = await fixture.db.selectFrom("refund").select("id").where("payment_id", "=", paymentId).execute();
  expect(refunds).toEqual([]);
  const refundId = await refund();
  const made = (await deliveries()).filter((one) => one.refund_id === refundId);
  expect(made.map(({ type }) => type)).toEqual(["refund.created"]);
});
