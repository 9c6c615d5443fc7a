import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { operations } from "../../../api/routes.ts";
import { setDestinationWait } from "../../../payments/maintenance/operator-actions.ts";
import { makeApprovalKey, signStatement } from "../../support/approval-key.ts";
import { allEntries, digestTables, withoutAuditLog } from "../../support/audited-changes.ts";
import { plantRefundState } from "../../support/plant-state.ts";
import { testActor } from "../../support/test-actor.ts";
import {
  type Answer,
  asset,
  destination,
  makeKey,
  makeMerchant,
  makePayment,
  movePayment,
  secondAsset,
  startApi,
} from "./start-api.ts";

const api = await startApi({ trustedProxies: ["127.0.0.1"] });
const shop = await makeMerchant(api);
const headers = { ...shop.headers, "x-forwarded-for": "198.51.100.23" };
const { id: keyId } = await api.db.selectFrom("api_key").select("id").executeTakeFirstOrThrow();
const fresh = () => ({ ...headers, "idempotency-key": randomUUID() });
const merchantPath = `/v1/merchants/${shop.merchantId}`;

/** Operations that create, pay or simulate payments: `event` has their history, and they decide nothing else. */
const recordedAsEvents = [
  "createPayment",
  "createMerchantPayment",
  "simulatePayment",
  "gatewayGetPaymentOptions",
  "gatewayFetchActions",
  "gatewayConfirmPayment",
];

async function makePaid(): Promise<string> {
  const id = await makePayment(api, shop);
  await movePayment(api, id, "requires_action", "processing");
  await movePayment(api, id, "processing", "succeeded");
  return id;
}

async function makeWaitingRefund(): Promise<string> {
  const refund = await api.post("/v1/refunds", headers, { paymentId: await makePaid() });
  const id = String(refund.body["refundId"]);
  await plantRefundState(api.db, id, "due");
  return id;
}

async function makeDestination(): Promise<string> {
  const body = { merchantName: `Other ${randomUUID()}`, merchantEmail: "o@example.test" };
  const other = await api.post("/v1/merchants", fresh(), body);
  const { id } = other.body["merchant"] as { id: string };
  const path = `/v1/merchants/${id}/settlements/crypto`;
  const added = await api.post(path, fresh(), { settlements: [{ asset, destination }] });
  const [first] = added.body["settlements"] as { id: string }[];
  return `${path}/${first?.id}`;
}

/** Requests a change of a destination that waits. Returns the call that decides about it. */
async function decide(decision: "approve" | "reject"): Promise<() => Promise<Answer>> {
  const path = await makeDestination();
  const merchantId = path.split("/")[3] ?? "";
  const key = await makeRegisteredKey(merchantId);
  const waitFor = (hours: number) =>
    setDestinationWait(api.deps, { actor: testActor, accountId: shop.accountId, hours });
  await waitFor(72);
  const changed = await api.put(path, headers, { destination: `eip155:31337:0x${"d3".repeat(20)}` });
  await waitFor(0);
  const { changeId } = changed.body["pendingChange"] as { changeId: string };
  const subject = { action: `${decision} destination`, merchantId, asset, receiver: `0x${"d3".repeat(20)}` } as const;
  const statement = signStatement(key, subject);
  return () => api.post(`${path.replace(/crypto\/.*/, "changes")}/${changeId}/${decision}`, headers, { statement });
}

const keysPath = `${merchantPath}/approval-keys`;

async function makeRegisteredKey(merchantId: string) {
  const key = makeApprovalKey();
  await api.post(`/v1/merchants/${merchantId}/approval-keys`, headers, { publicKey: key.publicKey });
  return key;
}

const makeOtherKey = async () =>
  (await makeKey(api, { accountId: shop.accountId, mode: "test", scopes: ["payments:read"] })).id;

async function makeEndpoint(): Promise<string> {
  const url = `https://shop.example.test/hooks/${randomUUID()}`;
  const { body } = await api.post("/v1/webhook-endpoints", headers, { url });
  return `/v1/webhook-endpoints/${(body["webhookEndpoint"] as { id: string }).id}`;
}

/** For each operation that changes something: prepares it, and returns the call. */
const changes: Record<string, () => Promise<() => Promise<Answer>>> = {
  cancelPayment: async () => {
    const id = await makePayment(api, shop);
    return () => api.post(`/v1/payments/${id}/cancel`, headers, {});
  },
  gatewayCancelPayment: async () => {
    const id = await makePayment(api, shop);
    return () => api.post(`/v1/gateway/payment/${id}/cancel`, headers, {});
  },
  createRefund: async () => {
    const paymentId = await makePaid();
    return () => api.post("/v1/refunds", headers, { paymentId });
  },
  withdrawRefund: async () => {
    const id = await makeWaitingRefund();
    return () => api.post(`/v1/refunds/${id}/withdraw`, headers, {});
  },
  createMerchant: async () => () =>
    api.post("/v1/merchants", fresh(), { merchantName: "Second", merchantEmail: "second@example.test" }),
  updateMerchant: async () => () => api.patch(merchantPath, headers, { merchantName: "Renamed" }),
  createCryptoSettlements: async () => () =>
    api.post(`${merchantPath}/settlements/crypto`, fresh(), { settlements: [{ asset: secondAsset, destination }] }),
  updateCryptoSettlement: async () => {
    const path = await makeDestination();
    return () => api.put(path, headers, { destination: `eip155:31337:0x${"d2".repeat(20)}` });
  },
  deleteCryptoSettlement: async () => {
    const path = await makeDestination();
    return () => api.delete(path, headers);
  },
  approveSettlementChange: () => decide("approve"),
  rejectSettlementChange: () => decide("reject"),
  registerApprovalKey: async () => () => api.post(keysPath, headers, { publicKey: makeApprovalKey().publicKey }),
  revokeApprovalKey: async () => {
    const { publicKey } = await makeRegisteredKey(shop.merchantId);
    return () => api.post(`${keysPath}/${publicKey}/revoke`, headers, {});
  },
  createApiKey: async () => () => api.post("/v1/api-keys", fresh(), { scopes: ["payments:read"] }),
  rotateApiKey: async () => {
    const id = await makeOtherKey();
    return () => api.post(`/v1/api-keys/${id}/rotate`, fresh(), {});
  },
  revokeApiKey: async () => {
    const id = await makeOtherKey();
    return () => api.post(`/v1/api-keys/${id}/revoke`, fresh(), {});
  },
  createAppId: async () => () => api.post("/v1/app-ids", fresh(), {}),
  revokeAppId: async () => {
    const { body } = await api.post("/v1/app-ids", headers, {});
    const { id } = body["appId"] as { id: string };
    return () => api.post(`/v1/app-ids/${id}/revoke`, headers, {});
  },
  createWebhookEndpoint: async () => () =>
    api.post("/v1/webhook-endpoints", headers, { url: "https://shop.example.test/hooks" }),
  updateWebhookEndpoint: async () => {
    const path = await makeEndpoint();
    return () => api.patch(path, headers, { payload: "thin" });
  },
  rotateWebhookSecret: async () => {
    const path = await makeEndpoint();
    return () => api.post(`${path}/rotate`, headers, {});
  },
  testWebhookEndpoint: async () => {
    const path = await makeEndpoint();
    return () => api.post(`${path}/test`, headers, {});
  },
  replayWebhookEvent: async () => {
    const path = await makeEndpoint();
    await makePaid();
    const { body } = await api.get(`${path}/deliveries`, headers);
    const [{ eventId }] = body["data"] as [{ eventId: string }];
    return () => api.post(`${path}/deliveries/${eventId}/replay`, headers, {});
  },
  replayWebhookEvents: async () => {
    const path = await makeEndpoint();
    return () => api.post(`${path}/replay`, headers, { from: "2026-01-01T00:00:00Z", until: "2026-02-01T00:00:00Z" });
  },
  deleteWebhookEndpoint: async () => {
    const path = await makeEndpoint();
    return () => api.delete(path, headers);
  },
  deleteMerchant: async () => () => api.delete(merchantPath, headers),
};

const writing = operations.filter(({ method }) => method !== "GET").map(({ name }) => name);

test("every operation that writes is either audited or recorded as the event of a payment", () => {
  expect([...Object.keys(changes), ...recordedAsEvents].sort()).toEqual([...writing].sort());
});

test.each(Object.entries(changes))(
  "%s writes entries with its key and address, or changes nothing",
  async (_name, prepare) => {
    const call = await prepare();
    const before = await digestTables(api.db);
    const refused = await withoutAuditLog(api.db, call);
    expect(refused.status).toBe(500);
    expect(await digestTables(api.db)).toBe(before);

    const count = (await allEntries(api.db)).length;
    expect((await call()).status).toBeLessThan(300);
    const entries = await allEntries(api.db);
    const written = entries.slice(0, entries.length - count);
    expect(written).not.toEqual([]);
    for (const one of written)
      expect(one).toMatchObject({ actor_kind: "key", actor_id: keyId, actor_address: "198.51.100.23" });
  },
);

test("no entry contains an API key or anything of a buyer", async () => {
  const text = JSON.stringify(await allEntries(api.db));
  for (const secret of [shop.key, shop.key.slice(-32), "receiver", "payer"]) expect(text).not.toContain(secret);
});
