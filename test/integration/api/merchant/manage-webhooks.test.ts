import { sql } from "kysely";
import { beforeEach, describe, expect, test } from "vitest";
import { listDueEvents } from "../../../../db/queries/webhook-deliveries.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import { deliverDue } from "../../../../payments/webhooks/deliver-events.ts";
import { rotateSecret } from "../../../../payments/webhooks/endpoint-secrets.ts";
import { replayEvents, sendTestEvent } from "../../../../payments/webhooks/replay-events.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { testEncryption } from "../../../support/test-deps.ts";
import { startWebhookEndpoint, verifyReceivedWebhook } from "../../../support/webhook-endpoint.ts";
import {
  destination,
  makeKey,
  makeMerchant,
  makePayment,
  secondAsset,
  startApi,
  type TestMerchant,
} from "../start-api.ts";

const api = await startApi();
const local = await startApi({ databaseUrl: api.databaseUrl, allowsPrivateHooks: true });
let shop: TestMerchant;
let headers: Record<string, string>;
const url = "https://shop.example.test/hooks";

beforeEach(async () => {
  shop = await makeMerchant(api);
  headers = { "api-key": shop.key };
});

type Endpoint = { id: string; url: string; status: string };
const endpointOf = (body: Record<string, unknown>) => body["webhookEndpoint"] as Endpoint;
const create = async (body: object = { url }) =>
  endpointOf((await api.post("/v1/webhook-endpoints", headers, body)).body);

/** Delivers what is due at an endpoint, as a worker does. */
const deliver = (endpointId: string) =>
  deliverDue({ ...api.deps, ...testEncryption() }, { endpointId, signal: new AbortController().signal });

describe("webhook endpoints over the API", () => {
  test("a key registers an endpoint, verifies its events with the secret, and reads the delivery", async () => {
    const server = await startWebhookEndpoint();
    const made = await local.post("/v1/webhook-endpoints", headers, { url: server.url });
    expect(made.status).toBe(201);
    const { id } = endpointOf(made.body);
    expect(endpointOf(made.body)).toMatchObject({
      status: "enabled",
      eventTypes: null,
      payload: "full",
      managedBy: "account",
    });
    const { body: tested } = await api.post(`/v1/webhook-endpoints/${id}/test`, headers, {});
    await deliver(id);
    const [arrival] = server.arrivals;
    if (!arrival) throw new Error("the test event has not arrived");
    expect(verifyReceivedWebhook(String(made.body["secret"]), arrival)).toMatchObject({
      id: tested["eventId"],
      type: "webhook_endpoint.test",
      data: { endpoint_id: id, live: false },
    });
    const { body } = await api.get(`/v1/webhook-endpoints/${id}/deliveries/${tested["eventId"]}`, headers);
    expect(body["delivery"]).toMatchObject({
      status: "delivered",
      request: { body: arrival.body, headers: { "webhook-id": tested["eventId"] } },
      attempts: [{ outcome: "200", response: { body: "" } }],
    });
    expect(JSON.stringify(body)).not.toContain("signature");
  });

  test("the secret is in no later response, and a rotation returns a new one", async () => {
    const made = await api.post("/v1/webhook-endpoints", headers, { url });
    const { id } = endpointOf(made.body);
    const path = `/v1/webhook-endpoints/${id}`;
    const rotated = await api.post(`${path}/rotate`, headers, {});
    expect(rotated.body["secret"]).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(rotated.body["secret"]).not.toBe(made.body["secret"]);
    expect(rotated.body["webhookEndpoint"]).toMatchObject({ previousUntil: expect.any(String) });
    const now = await api.post(`${path}/rotate`, headers, { now: true });
    expect(now.body["webhookEndpoint"]).toMatchObject({ previousUntil: null });
    const texts = [await api.get(path, headers), await api.get("/v1/webhook-endpoints", headers)].map(({ body }) =>
      JSON.stringify(body),
    );
    for (const { body } of [made, rotated, now])
      for (const text of [...texts, api.lines.join("")]) expect(text).not.toContain(String(body["secret"]));
  });

  test("a URL of a private network or without TLS is refused, also as a change", async () => {
    const { id } = await create();
    for (const bad of [
      "http://shop.example.test/",
      "https://10.0.0.1/",
      "https://[::1]/",
      "https://169.254.169.254/latest",
    ]) {
      const answers = [
        await api.post("/v1/webhook-endpoints", headers, { url: bad }),
        await api.patch(`/v1/webhook-endpoints/${id}`, headers, { url: bad }),
      ];
      for (const { status, body } of answers) {
        expect([status, body["code"]]).toEqual([400, "params_validation"]);
        expect(body["message"]).toMatch(/^url: /);
      }
    }
  });

  test("a repeated registration is refused, and the first endpoint stays", async () => {
    const { id } = await create();
    expect((await api.post("/v1/webhook-endpoints", headers, { url })).body).toMatchObject({ code: "invalid_state" });
    expect((await api.get("/v1/webhook-endpoints", headers)).body["data"]).toMatchObject([{ id }]);
  });

  test("filters name known types and own merchants, and null removes them", async () => {
    const { id } = await create({ url, eventTypes: ["payment.succeeded"], merchantIds: [shop.merchantId] });
    const path = `/v1/webhook-endpoints/${id}`;
    const patch = async (body: object) => (await api.patch(path, headers, body)).body;
    const message = expect.stringMatching(
      /^eventTypes\.0: expected types of events: payment\.created, .*destination\.applied/,
    );
    expect(await patch({ eventTypes: ["payment.paid"] })).toMatchObject({ code: "params_validation", message });
    expect(await patch({ eventTypes: [] })).toMatchObject({ code: "params_validation" });
    const stranger = await makeMerchant(api);
    expect(await patch({ merchantIds: [shop.merchantId, stranger.merchantId] })).toMatchObject({
      code: "merchant_not_found",
      message: "merchantIds.1: no such merchant",
    });
    expect(await patch({ payload: "thin" })).toMatchObject({
      webhookEndpoint: { eventTypes: ["payment.succeeded"], merchantIds: [shop.merchantId], payload: "thin" },
    });
    expect(await patch({ eventTypes: null, merchantIds: null })).toMatchObject({
      webhookEndpoint: { eventTypes: null, merchantIds: null, payload: "thin" },
    });
  });

  test("an endpoint of another account or mode does not exist", async () => {
    const { id } = await create();
    const stranger = await makeMerchant(api);
    const live = await makeKey(api, { accountId: shop.accountId, mode: "live", scopes: ["webhooks"] });
    const path = `/v1/webhook-endpoints/${id}`;
    for (const key of [stranger.key, live.key]) {
      const other = { "api-key": key };
      const answers = [
        await api.get(path, other),
        await api.patch(path, other, { status: "disabled" }),
        await api.delete(path, other),
        await api.post(`${path}/rotate`, other, {}),
        await api.post(`${path}/test`, other, {}),
        await api.get(`${path}/deliveries`, other),
        await api.post(`${path}/replay`, other, { status: "given_up" }),
      ];
      for (const { status, body } of answers)
        expect([status, body["code"]]).toEqual([404, "webhook_endpoint_not_found"]);
      expect((await api.get("/v1/webhook-endpoints", other)).body["data"]).toEqual([]);
    }
    expect((await api.get(path, headers)).body["webhookEndpoint"]).toMatchObject({ id, status: "enabled" });
  });

  test("a key reads and tests an endpoint of an operator, and can neither change it nor replay its events", async () => {
    const deps = { ...api.deps, ...testEncryption(), validateUrl: () => undefined };
    const owner = { accountId: shop.accountId, mode: "test" as const };
    const { endpoint } = unwrap(await createEndpoint(deps, { ...owner, actor: testActor, url }));
    const path = `/v1/webhook-endpoints/${endpoint.id}`;
    expect((await api.get(path, headers)).body["webhookEndpoint"]).toMatchObject({ managedBy: "operator" });
    const { status: tested, body: test } = await api.post(`${path}/test`, headers, {});
    expect(tested).toBe(200);
    for (const { status } of [
      await api.patch(path, headers, { status: "disabled" }),
      await api.post(`${path}/rotate`, headers, { now: true }),
      await api.delete(path, headers),
      await api.post(`${path}/replay`, headers, { status: "given_up" }),
      await api.post(`${path}/deliveries/${test["eventId"]}/replay`, headers, {}),
    ])
      expect(status).toBe(403);
    expect((await api.get(path, headers)).body["webhookEndpoint"]).toMatchObject({ status: "enabled" });
  });

  test("a key replays a period of at most 31 days, and nothing more while over 5,000 events are pending", async () => {
    const { id } = await create();
    const replay = (body: object) => api.post(`/v1/webhook-endpoints/${id}/replay`, headers, body);
    const month = { from: "2026-01-01T00:00:00.000Z", until: "2026-02-01T00:00:00.000Z" };
    expect((await replay(month)).body).toEqual({ count: 0, nextCursor: null });
    expect((await replay({ ...month, until: "2026-02-01T00:00:00.001Z" })).body).toMatchObject({
      code: "params_validation",
      message: "from: expected a period of at most 31 days",
    });
    const addPending = (name: string, count: number) =>
      sql`with added as (
          insert into webhook_event (id, account_id, mode, type, endpoint_id, detail, at)
          select 'evt_' || ${name} || n, account_id, mode, 'webhook_endpoint.updated', id, '{}', created_at
          from webhook_endpoint, generate_series(1, ${sql.lit(count)}) n where id = ${id} returning id
        )
        insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
        select id, ${id}, 0, now(), now() from added`.execute(api.deps.db);
    await addPending("many", 5_000);
    expect((await replay({ status: "given_up" })).status).toBe(200);
    await addPending("more", 1);
    for (const body of [{ status: "given_up" }, month]) {
      const refused = await replay(body);
      expect([refused.status, refused.body["code"]]).toEqual([429, "rate_limited"]);
    }
    const single = await api.post(`/v1/webhook-endpoints/${id}/deliveries/evt_more1/replay`, headers, {});
    expect([single.status, single.body["code"], single.headers.get("retry-after")]).toEqual([
      429,
      "rate_limited",
      "60",
    ]);
    const deps = { ...api.deps, ...testEncryption() };
    const byOperator = { endpointId: id, actor: testActor, which: { since: new Date(0), until: new Date() } };
    expect(await replayEvents(deps, byOperator)).toMatchObject({ ok: true });
  });

  test("a key sends no further test event while ten notices wait for the endpoint, because notices go before payments", async () => {
    const { id } = await create();
    const send = () => api.post(`/v1/webhook-endpoints/${id}/test`, headers, {});
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from webhook_delivery where endpoint_id = ${id} and due_at is not null`.execute(
      api.deps.db,
    );
    for (let waiting = rows[0]?.count ?? 0; waiting < 10; waiting += 1) expect((await send()).status).toBe(200);
    const refused = await send();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
  });

  describe("a stolen key", () => {
    /** Inserts events about an endpoint of the account that another key has caused within the last day. */
    const addEvents = (endpointId: string, type: string, count: number) =>
      sql`insert into webhook_event (account_id, mode, type, endpoint_id, detail, at)
        select account_id, mode, ${type}, id, '{}', now() - interval '23 hours'
        from webhook_endpoint, generate_series(1, ${sql.lit(count)}) where id = ${endpointId}`.execute(api.deps.db);
    const path = (id: string) => `/v1/webhook-endpoints/${id}`;

    test("delays no notice of a change of a destination by changes of endpoints", async () => {
      const { id } = await create();
      const other = await create({ url: `${url}/other` });
      await addEvents(other.id, "webhook_endpoint.updated", 50);
      const settlements = [{ asset: secondAsset, destination }];
      const { accountId, merchantId } = shop;
      await addDestinations(api.deps, { actor: testActor, accountId, merchantId, mode: "test", settlements });
      const now = new Date(Date.now() + 60_000);
      const due = await listDueEvents(api.deps.db, { endpointId: id, now, without: [], limit: 100 });
      const [first] = due.map(({ type }) => type);
      expect([due.length > 50, first]).toEqual([true, "destination.change_requested"]);
    });

    test("changes endpoints 300 times a day, and an operator goes on", async () => {
      const { id } = await create();
      await addEvents(id, "webhook_endpoint.updated", 298);
      expect((await api.patch(path(id), headers, { payload: "thin" })).status).toBe(200);
      for (const { status, body } of [
        await api.patch(path(id), headers, { payload: "full" }),
        await api.post(`${path(id)}/rotate`, headers, {}),
      ])
        expect([status, body["code"]]).toEqual([429, "rate_limited"]);
      expect((await api.get(path(id), headers)).body["webhookEndpoint"]).toMatchObject({ payload: "thin" });
      const deps = { ...api.deps, ...testEncryption() };
      expect(await rotateSecret(deps, { endpointId: id, actor: testActor })).toMatchObject({ ok: true });
      expect((await api.post(`${path(id)}/test`, headers, {})).status).toBe(200);
      expect((await api.delete(path(id), headers)).status).toBe(200);
    });

    test("sends 1,000 test events a day", async () => {
      const { id } = await create();
      await addEvents(id, "webhook_endpoint.test", 1_000);
      await sql`update webhook_delivery set state = 'delivered', due_at = null where endpoint_id = ${id}`.execute(
        api.deps.db,
      );
      const refused = await api.post(`${path(id)}/test`, headers, {});
      expect([refused.body["code"], refused.headers.get("retry-after")]).toEqual(["rate_limited", "3600"]);
      expect((await api.patch(path(id), headers, { payload: "thin" })).status).toBe(200);
      expect(await sendTestEvent(api.deps, { endpointId: id, actor: testActor })).toMatchObject({ ok: true });
    });
  });

  test("the database refuses an event about an endpoint that looks like one about a payment", async () => {
    const { id } = await create();
    const forge = sql`
      insert into webhook_event (account_id, mode, type, endpoint_id, detail, at)
      select account_id, mode, 'payment.succeeded', id, '{"payment_id":"pay_1","status":"succeeded"}', now()
      from webhook_endpoint where id = ${id}`;
    await expect(forge.execute(api.deps.db)).rejects.toMatchObject({ code: "23514" });
  });

  test("an event about an endpoint says nothing that its row does not say, whatever is stored beside its reason", async () => {
    const { id } = await create();
    const detail = JSON.stringify({ reason: "requested", changed_by: null, live: true, endpoint_id: "other" });
    await sql`
      insert into webhook_event (account_id, mode, type, endpoint_id, detail, at)
      select account_id, mode, 'webhook_endpoint.updated', id, ${detail}, now() from webhook_endpoint where id = ${id}`.execute(
      api.deps.db,
    );
    const { body } = await api.get("/v1/events?limit=100", headers);
    const [event] = (body["data"] as { type: string; data: object }[]).slice(-1);
    expect(event?.data).toEqual({ endpoint_id: id, live: false, reason: "requested", changed_by: null });
  });

  test("a change of one endpoint is an event that names the key", async () => {
    const { id } = await create();
    await api.delete(`/v1/webhook-endpoints/${id}`, headers);
    const { body } = await api.get("/v1/events", headers);
    const all = body["data"] as { type: string; data: object }[];
    const events = all.filter(({ type }) => type.startsWith("webhook_endpoint."));
    expect(events.map(({ type }) => type)).toEqual(["webhook_endpoint.created", "webhook_endpoint.deleted"]);
    expect(events[1]?.data).toMatchObject({
      endpoint_id: id,
      changed_by: { type: "key", id: expect.stringMatching(/^key_/) },
    });
  });
});

test.each(["%00", "evt_%00", "x".repeat(65)])(
  "the refusal of a delivery names the event when %s is no id of one",
  async (eventId) => {
    const { id } = await create();
    const path = `/v1/webhook-endpoints/${id}/deliveries/${eventId}`;
    const refused = { status: 404, body: { code: "event_not_found", message: "no such event" } };
    expect(await api.get(path, headers)).toMatchObject(refused);
    expect(await api.post(`${path}/replay`, headers, {})).toMatchObject(refused);
    const ofNone = `/v1/webhook-endpoints/%00/deliveries/${eventId}`;
    expect(await api.get(ofNone, headers)).toMatchObject({ status: 404, body: { code: "webhook_endpoint_not_found" } });
  },
);

describe("events over the API", () => {
  test("a reader catches up page by page, and continues with the last cursor", async () => {
    const ids = [await makePayment(api, shop), await makePayment(api, shop), await makePayment(api, shop)];
    const read = async (cursor?: unknown) =>
      (await api.get(`/v1/events?limit=2&payload=thin${cursor ? `&cursor=${cursor}` : ""}`, headers)).body;
    // The events of the merchant's destination come first.
    const before = await api.get("/v1/events?limit=2", headers);
    const first = await read(before.body["nextCursor"]);
    const second = await read(first["nextCursor"]);
    expect([first["hasMore"], second["hasMore"]]).toEqual([true, false]);
    const fourth = await makePayment(api, shop);
    const third = await read(second["nextCursor"]);
    const seen = [first, second, third].flatMap((page) => page["data"] as { data: { payment_id: string } }[]);
    expect(seen.map(({ data }) => data.payment_id)).toEqual([...ids, fourth]);
    expect(await read(third["nextCursor"])).toEqual({ data: [], nextCursor: third["nextCursor"], hasMore: false });
  });

  test("an event of another account does not exist", async () => {
    await makePayment(api, shop);
    const { body } = await api.get("/v1/events", headers);
    const [{ id }] = (body["data"] as { id: string }[]).slice(-1) as [{ id: string }];
    const stranger = { "api-key": (await makeMerchant(api)).key };
    expect((await api.get(`/v1/events/${id}`, stranger)).body).toMatchObject({ code: "event_not_found" });
    expect(JSON.stringify((await api.get("/v1/events", stranger)).body)).not.toContain(id);
    expect((await api.get(`/v1/events?cursor=${body["nextCursor"]}`, stranger)).status).toBe(400);
    expect((await api.get(`/v1/events/${id}`, headers)).body["event"]).toMatchObject({ id, type: "payment.created" });
  });
});
