import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { cancelPayment } from "../../../../payments/lifecycle/cancel-payment.ts";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { simulatePayment } from "../../../../payments/lifecycle/simulate-payment.ts";
import { nameRequester } from "../../../../payments/requester.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeWebhookFixture, verifyReceivedWebhook } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
const buyer = await fundBuyer(chain, 100_000_000n);

const openShop = (options: Parameters<typeof makeWebhookFixture>[1] = {}) => makeWebhookFixture(chain, options);

describe("payment events", () => {
  test("a live payment's events arrive once each, correctly signed, each with a snapshot of its moment", async () => {
    const { fixture, endpoint, secret, deliver } = await openShop();
    const id = await fixture.pay(buyer, 250n);
    const { id: settlementId } = await fixture.settlementOf(id);
    await fixture.settle(settlementId);
    await fixture.relay();
    await fixture.watch();
    await deliver();
    await deliver();
    expect(endpoint.types()).toEqual(["created", "processing", "succeeded", "settled"].map((one) => `payment.${one}`));
    for (const arrival of endpoint.arrivals) expect(verifyReceivedWebhook(secret, arrival)).toEqual(arrival.event);
    expect(new Set(endpoint.arrivals.map(({ event }) => event.id)).size).toBe(4);

    const row = await fixture.db.selectFrom("payment").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
    const events = await fixture.db.selectFrom("event").selectAll().where("subject", "=", id).orderBy("id").execute();
    const [created, processing, succeeded] = events.map(({ at }) => at.toISOString());
    const settlement = await fixture.settlementOf(id);
    const payout = await fixture.db
      .selectFrom("ledger_group")
      .select("tx_hash")
      .where("kind", "=", "settlement_paid")
      .executeTakeFirstOrThrow();
    const token = { unit: `caip19/${chain.asset}`, value: "2500000" };
    const whole = {
      payment_id: id,
      merchant_id: fixture.merchantId,
      live: true,
      payment_state_version: 3,
      reference_id: null,
      description: null,
      metadata: {},
      status: "succeeded",
      amount: { unit: "iso4217/USD", value: "250" },
      created_at: created,
      expires_at: row.expires_at.toISOString(),
      processing: {
        processing_at: processing,
        option_amount: token,
        fee: null,
        settlement_amount: token,
        buyer_caip10: `${chain.id}:${buyer.address}`,
        chain_caip2: chain.id,
      },
      success: { succeeded_at: succeeded, tx_id: row.tx_id },
      failed: null,
      cancelled: null,
      expired: null,
      settled: { settled_at: settlement.paid_at?.toISOString(), tx_id: payout.tx_hash, amount: token },
    };
    const { processing: paying, success, settled } = whole;
    const before = { ...whole, settled: null };
    expect(row.tx_id).toMatch(/^0x[0-9a-f]{64}$/);
    expect(payout.tx_hash).not.toBe(row.tx_id);
    const eventAt = (index: number) => endpoint.arrivals[index]?.event;
    expect(eventAt(3)).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
      type: "payment.settled",
      api_version: "2026-05-18",
      created_at: settled.settled_at,
      data: whole,
    });
    expect(eventAt(2)).toMatchObject({
      created_at: success.succeeded_at,
      data: { ...before, payment_state_version: 2 },
    });
    expect(eventAt(1)).toMatchObject({
      created_at: paying.processing_at,
      data: { ...before, payment_state_version: 1, status: "processing", success: null },
    });
    expect(eventAt(0)).toMatchObject({
      created_at: created,
      data: { ...before, payment_state_version: 0, status: "requires_action", processing: null, success: null },
    });
  });

  test("a test payment's events arrive and are marked as not live", async () => {
    const { fixture, endpoint, secret, deliver } = await openShop({ mode: "test" });
    const id = await fixture.create(100n, { referenceId: "order 7" });
    await fixture.verify(await fixture.attempt(id, privateKeyToAccount(newKey().privateKey)));
    await deliver();
    expect(endpoint.types()).toEqual(["payment.created", "payment.processing", "payment.succeeded"]);
    for (const arrival of endpoint.arrivals) verifyReceivedWebhook(secret, arrival);
    expect(endpoint.arrivals[2]?.event.data).toMatchObject({
      live: false,
      reference_id: "order 7",
      success: { tx_id: `test:${id}` },
      processing: { chain_caip2: chain.id },
    });
  });

  test("expired, cancelled and failed payments send events with their own stage", async () => {
    const { fixture, endpoint, deliver } = await openShop({ mode: "test" });
    const query = (paymentId: string) => ({ paymentId, mode: fixture.mode });
    const [late, gone, bad] = [await fixture.create(), await fixture.create(), await fixture.create()];
    const account = { id: fixture.accountId, actor: testActor };
    const by = { account, requester: nameRequester("key", ["a key"], { isOne: true }) };
    unwrap(await cancelPayment(fixture.deps, query(gone), "cancelled_by_user", by));
    unwrap(await simulatePayment(fixture.deps, query(bad), "failed"));
    fixture.clock.advance(600_000);
    await expirePayment(fixture.deps, late);
    await deliver();
    const last = (id: string) => endpoint.of(id).at(-1)?.event;
    const none = { success: null, failed: null, cancelled: null, expired: null, settled: null };
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(last(late)).toMatchObject({
      type: "payment.expired",
      data: { ...none, status: "expired", payment_state_version: 1, processing: null, expired: { expired_at: at } },
    });
    expect(last(gone)).toMatchObject({
      type: "payment.cancelled",
      data: {
        ...none,
        status: "cancelled",
        processing: null,
        cancelled: { cancelled_at: at, cancellation_reason: "cancelled_by_user" },
      },
    });
    expect(last(bad)).toMatchObject({
      type: "payment.failed",
      data: {
        ...none,
        status: "failed",
        payment_state_version: 2,
        processing: { chain_caip2: "test:simulated", buyer_caip10: null },
        failed: { failed_at: at, failure_reason: "declined_user" },
      },
    });
    expect(endpoint.arrivals).toHaveLength(7);
  });
});
