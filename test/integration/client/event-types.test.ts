import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  type ApprovalKeyEventData,
  type DestinationEventData,
  type EndpointEventData,
  PaymentClient,
  type PaymentEventData,
  type RefundEventData,
} from "../../../client/index.ts";
import { refundReasons } from "../../../payments/payouts/refund-views.ts";
import { asset, destination, makeMerchant, startApi } from "../api/start-api.ts";

/** Every member of the data of an event: the compiler demands that none is missing here and none is too many. */
const payment: Record<keyof PaymentEventData, true> = {
  payment_id: true,
  merchant_id: true,
  live: true,
  payment_state_version: true,
  reference_id: true,
  description: true,
  metadata: true,
  status: true,
  amount: true,
  created_at: true,
  expires_at: true,
  processing: true,
  success: true,
  failed: true,
  cancelled: true,
  expired: true,
  settled: true,
};
const refund: Record<keyof RefundEventData, true> = {
  refund_id: true,
  refund_state_version: true,
  payment_id: true,
  merchant_id: true,
  live: true,
  reference_id: true,
  status: true,
  reason: true,
  amount: true,
  receiver_caip10: true,
  is_record_only: true,
  created_at: true,
  held: true,
  success: true,
  failed: true,
};
const refundReason: Record<NonNullable<RefundEventData["reason"]>, true> = {
  screening: true,
  receiver_blocked: true,
  withdrawn: true,
};
const change: Record<keyof DestinationEventData, true> = {
  change_id: true,
  merchant_id: true,
  live: true,
  settlement_id: true,
  status: true,
  asset: true,
  previous_destination: true,
  destination: true,
  requested_at: true,
  requested_by: true,
  applies_at: true,
  approved: true,
  applied: true,
  rejected: true,
};
const approvalKey: Record<keyof ApprovalKeyEventData, true> = {
  merchant_id: true,
  live: true,
  public_key: true,
  status: true,
  registered_at: true,
  registered_by: true,
  applies_at: true,
  revoked: true,
};
const endpoint: Record<keyof EndpointEventData, true> = {
  endpoint_id: true,
  live: true,
  reason: true,
  changed_by: true,
};

test("the data of each type of event has the members of its type in the client, and no other", async () => {
  const api = await startApi({ allowsPrivateHooks: true });
  const { key, merchantId } = await makeMerchant(api);
  const client = new PaymentClient({ baseUrl: api.url, apiKey: key, merchantId });
  const { paymentId } = await client.payments.create({ amount: { unit: "iso4217/USD", value: "1250" } });
  await client.payments.simulate(paymentId, "succeeded");
  const refunded = await client.refunds.create({ paymentId });
  const { merchant } = await client.merchants.create({ merchantName: "Second", merchantEmail: "second@example.test" });
  const { settlements } = await client.settlements.create(merchant.id, { settlements: [{ asset, destination }] });
  await client.settlements.delete(merchant.id, settlements[0]?.id ?? "");
  await client.approvalKeys.register(merchantId, randomBytes(32).toString("hex"));
  await client.webhookEndpoints.create({ url: "https://shop.example.com/hooks" });
  const events = await Array.fromAsync(client.events.list());
  const membersOf = (type: string) => {
    const { data } = events.find((event) => event.type.startsWith(type)) ?? {};
    return Object.keys(data ?? {}).toSorted();
  };
  // The response says that the refund has succeeded, so neither event says less, in whatever order they arrive.
  const ofRefunds = events.flatMap(({ type, data }) => (type.startsWith("refund.") ? [{ type, ...data }] : []));
  expect(refunded).toMatchObject({ status: "succeeded", isRecordOnly: true });
  const success = { succeeded_at: refunded.succeededAt, tx_id: refunded.txId };
  const succeeded = { status: refunded.status, success, held: null, failed: null };
  expect(ofRefunds).toMatchObject([
    { type: "refund.created", refund_state_version: 0, is_record_only: true, ...succeeded },
    { type: "refund.succeeded", refund_state_version: 2, is_record_only: true, ...succeeded },
  ]);
  for (const [type, members] of Object.entries({ payment, refund, destination: change, approval_key: approvalKey }))
    expect([type, membersOf(`${type}.`)]).toEqual([type, Object.keys(members).toSorted()]);
  expect(membersOf("webhook_endpoint.created")).toEqual(Object.keys(endpoint).toSorted());
  const ids = { payment: "payment_id", refund: "refund_id", destination: "change_id", approval_key: "public_key" };
  for await (const { type, data } of client.events.list({ payload: "thin" })) {
    const about = type.split(".")[0] ?? "";
    const expected = about in ids ? [ids[about as keyof typeof ids], "merchant_id"] : ["endpoint_id"];
    expect([type, Object.keys(data).toSorted()]).toEqual([type, ["live", ...expected].toSorted()]);
  }
});

test("the client knows every reason that an event of a refund can have", () => {
  // No event reports why a refund waits.
  const reported = refundReasons.filter((reason) => !reason.endsWith("_short"));
  expect(Object.keys(refundReason).toSorted()).toEqual(reported.toSorted());
});
