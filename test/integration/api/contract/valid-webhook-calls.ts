import { type Api, makePayment, type TestMerchant } from "../start-api.ts";
import type { ValidCall } from "./valid-calls.ts";

/** Returns how to call each operation on webhooks and events; every call uses an endpoint of its own. */
export function webhookCalls(api: Api, merchant: TestMerchant): Record<string, () => Promise<ValidCall>> {
  const headers = { "api-key": merchant.key };
  let made = 0;
  const newUrl = () => {
    made += 1;
    return `https://shop.example.test/hooks/${made}`;
  };
  let before: string | undefined;
  /** The account has a limit of endpoints and one of registrations a day: deletes the endpoint before, and ages all of them. */
  const freeLimits = async () => {
    if (before) await api.delete(before, headers);
    await api.deps.db
      .updateTable("webhook_endpoint")
      .set({ created_at: new Date(0) })
      .where("account_id", "=", merchant.accountId)
      .execute();
  };
  const newEndpoint = async (): Promise<string> => {
    await freeLimits();
    const { body } = await api.post("/v1/webhook-endpoints", headers, { url: newUrl() });
    before = `/v1/webhook-endpoints/${(body["webhookEndpoint"] as { id: string }).id}`;
    return before;
  };
  const newDelivery = async (): Promise<string> => {
    const endpoint = await newEndpoint();
    await makePayment(api, merchant);
    const { body } = await api.get(`${endpoint}/deliveries?limit=1`, headers);
    const [{ eventId }] = body["data"] as [{ eventId: string }];
    return `${endpoint}/deliveries/${eventId}`;
  };
  const call =
    (method: string, toPath: () => Promise<string>, action = "", body?: unknown) =>
    async () => ({
      method,
      path: `${await toPath()}${action}`,
      headers,
      ...(body === undefined ? {} : { body }),
    });
  const endpoints = async () => "/v1/webhook-endpoints";
  const events = async () => {
    await makePayment(api, merchant);
    return "/v1/events";
  };
  return {
    createWebhookEndpoint: async () => {
      await freeLimits();
      before = undefined;
      const body = {
        url: newUrl(),
        eventTypes: ["payment.succeeded"],
        merchantIds: [merchant.merchantId],
        payload: "thin",
      };
      return { method: "POST", path: await endpoints(), headers, body };
    },
    listWebhookEndpoints: call("GET", endpoints),
    getWebhookEndpoint: call("GET", newEndpoint),
    updateWebhookEndpoint: call("PATCH", newEndpoint, "", { eventTypes: null, status: "disabled" }),
    deleteWebhookEndpoint: call("DELETE", newEndpoint),
    rotateWebhookSecret: call("POST", newEndpoint, "/rotate", { now: true }),
    testWebhookEndpoint: call("POST", newEndpoint, "/test", {}),
    listWebhookDeliveries: call("GET", newEndpoint, "/deliveries?limit=2&status=pending"),
    getWebhookDelivery: call("GET", newDelivery),
    replayWebhookEvent: call("POST", newDelivery, "/replay", {}),
    replayWebhookEvents: call("POST", newEndpoint, "/replay", {
      from: "2026-01-01T00:00:00Z",
      until: "2026-02-01T00:00:00Z",
    }),
    listEvents: call("GET", events, "?limit=2"),
    getEvent: async () => {
      const { body } = await api.get("/v1/events?limit=1&payload=thin", headers);
      const [{ id }] = body["data"] as [{ id: string }];
      return { method: "GET", path: `/v1/events/${id}`, headers };
    },
  };
}
