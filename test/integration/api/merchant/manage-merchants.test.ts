import { randomUUID } from "node:crypto";
import sharp from "sharp";
import { expect, test } from "vitest";
import { createAccount } from "../../../../payments/merchants/accounts.ts";
import { createSafeFetch } from "../../../../runtime/safe-fetch.ts";
import { startHttps } from "../../../support/https-server.ts";
import { photo, plain } from "../../../support/sample-pictures.ts";
import { testActor } from "../../../support/test-actor.ts";
import { asset, destination, makeKey, makeMerchant, makePayment, startApi } from "../start-api.ts";

const large = await photo(1_000).jpeg().toBuffer();
const square = await plain(600, 600).png().toBuffer();
let picture: { body: Buffer | string; status?: number; type?: string } = { body: large };
const icons = await startHttps(["icons.test"], (_request, response) => {
  response.writeHead(picture.status ?? 200, { "content-type": picture.type ?? "text/plain" }).end(picture.body);
});
const resolve = async () => ["127.0.0.1"];
const api = await startApi({ safeFetch: createSafeFetch({ allowPrivate: true, ca: icons.ca, resolve }) });
const iconUrl = `https://icons.test:${icons.port}/logo`;
const owner = await newOwner();
const shop = { merchantName: "Café Zoë", merchantEmail: "zoe@example.test" };

/** Returns the headers of an account's backend. */
async function newOwner(mode: "live" | "test" = "live") {
  const { id: accountId } = await createAccount(api.deps, { actor: testActor, name: "Owner" });
  const { key } = await makeKey(api, {
    accountId,
    mode,
    scopes: ["merchants", "settlements", "payments:read", "payments:write"],
  });
  return { "api-key": key };
}

const fresh = () => ({ "idempotency-key": randomUUID() });
async function make(headers = owner, body: object = shop) {
  const answer = await api.post("/v1/merchants", { ...headers, ...fresh() }, body);
  expect(answer.status).toBe(201);
  return answer.body["merchant"] as Record<string, string>;
}

test("a merchant is created, read, changed and deleted", async () => {
  const made = await make();
  expect(made).toMatchObject({
    name: "Café Zoë",
    email: "zoe@example.test",
    status: "active",
    iconUrl: null,
    servedIconUrl: null,
  });
  expect(made["id"]).toMatch(/^mrch_/);
  expect(made["createdAt"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const path = `/v1/merchants/${made["id"]}`;
  expect((await api.get(path, owner)).body).toEqual({
    merchant: { ...made, settlements: { crypto: [], fiat: [] } },
  });
  const renamed = await api.patch(path, owner, { merchantName: "Zoë's" });
  expect(renamed).toMatchObject({ status: 200, body: { merchant: { ...made, name: "Zoë's" } } });
  expect(await api.delete(path, owner)).toMatchObject({ status: 200, body: { id: made["id"], deleted: true } });
  expect(await api.delete(path, owner)).toMatchObject({ status: 200, body: { id: made["id"], deleted: true } });
  for (const gone of [await api.get(path, owner), await api.patch(path, owner, { merchantName: "x" })])
    expect(gone).toMatchObject({ status: 404, body: { code: "merchant_not_found" } });
});

test("a deleted merchant creates no new payments, and its open payments go on", async () => {
  const merchant = await makeMerchant(api);
  const paymentId = await makePayment(api, merchant);
  await api.delete(`/v1/merchants/${merchant.merchantId}`, merchant.headers);
  const refused = await api.post("/v1/payments", merchant.headers, { amount: { unit: "iso4217/USD", value: "1" } });
  expect(refused).toMatchObject({ status: 404, body: { code: "merchant_not_found" } });
  expect(await api.get(`/v1/payments/${paymentId}/status`, merchant.headers)).toMatchObject({ status: 200 });
});

test("a suspended merchant creates no payments", async () => {
  const merchant = await makeMerchant(api);
  await api.db.updateTable("merchant").set({ status: "suspended" }).where("id", "=", merchant.merchantId).execute();
  const refused = await api.post("/v1/payments", merchant.headers, { amount: { unit: "iso4217/USD", value: "1" } });
  expect(refused).toMatchObject({ status: 403, body: { code: "forbidden", message: "the merchant is suspended" } });
});

test("merchants are listed page by page, newest first, under both names, and none twice", async () => {
  const headers = await newOwner();
  expect((await api.get("/v1/merchants", headers)).body).toEqual({
    data: [],
    merchants: [],
    totalCount: 0,
    nextCursor: null,
  });
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1)
    ids.unshift((await make(headers, { ...shop, merchantName: `Shop ${index} 50%` }))["id"] as string);
  const seen: string[] = [];
  let cursor = "";
  for (let pages = 0; pages < 3; pages += 1) {
    const { body } = await api.get(`/v1/merchants?limit=2${cursor}`, headers);
    expect(body["totalCount"]).toBe(5);
    expect(body["merchants"]).toEqual(body["data"]);
    seen.push(...(body["data"] as { id: string }[]).map(({ id }) => id));
    if (body["nextCursor"] === null) break;
    cursor = `&cursor=${body["nextCursor"]}`;
    // A merchant that changes meanwhile moves nothing.
    if (pages === 0)
      await api.db
        .updateTable("merchant")
        .set({ name: "x" })
        .where("id", "=", ids[4] as string)
        .execute();
  }
  expect(seen).toEqual(ids);
  const found = async (query: string) =>
    ((await api.get(`/v1/merchants?${query}`, headers)).body["data"] as { id: string }[]).map(({ id }) => id);
  expect(await found("search=shop%203")).toEqual([ids[1]]);
  expect(await found("search=%25")).toHaveLength(4);
  expect(await found(`search=${ids[2]}`)).toEqual([ids[2]]);
  expect(await found("status=suspended")).toEqual([]);
});

test("another account's or mode's merchant cannot be found", async () => {
  const made = await make();
  const path = `/v1/merchants/${made["id"]}`;
  for (const stranger of [await newOwner(), await newOwner("test")]) {
    const answers = [
      await api.get(path, stranger),
      await api.patch(path, stranger, { merchantName: "mine" }),
      await api.delete(path, stranger),
      await api.get(`${path}/settlements`, stranger),
      await api.post(
        `${path}/settlements/crypto`,
        { ...stranger, ...fresh() },
        { settlements: [{ asset, destination }] },
      ),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, body: { code: "merchant_not_found" } });
    expect((await api.get("/v1/merchants", stranger)).body["totalCount"]).toBe(0);
  }
  expect((await api.get(path, owner)).body["merchant"]).toMatchObject({ name: "Café Zoë" });
});

test.each([
  ["no name", { merchantEmail: "a@b.test" }, "merchantName"],
  ["an empty name", { ...shop, merchantName: " " }, "merchantName"],
  ["a long name", { ...shop, merchantName: "x".repeat(257) }, "merchantName"],
  ["a control character in its name", { ...shop, merchantName: "Shop\u001b]52;c;eA==\u0007" }, "merchantName"],
  ["a line feed in its name", { ...shop, merchantName: "Shop\nToo" }, "merchantName"],
  ["no e-mail", { ...shop, merchantEmail: "no-address" }, "merchantEmail"],
  ["a logo that is not a string", { ...shop, iconUrl: 1 }, "iconUrl"],
  ["a logo URL that is not HTTP", { ...shop, iconUrl: "ftp://icons.test/" }, "iconUrl"],
])("a merchant with %s is refused with the member's name, and nothing is stored", async (_what, body, named) => {
  const before = (await api.get("/v1/merchants", owner)).body["totalCount"];
  const answer = await api.post("/v1/merchants", { ...owner, ...fresh() }, body);
  expect(answer).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(answer.body["message"]).toContain(named);
  expect((await api.get("/v1/merchants", owner)).body["totalCount"]).toBe(before);
});

test("a merchant with the name and e-mail address of another one is refused, also when the calls race", async () => {
  const headers = await newOwner();
  const create = (body: object) => api.post("/v1/merchants", { ...headers, ...fresh() }, body);
  const answers = await Promise.all(Array.from({ length: 8 }, () => create(shop)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  for (const answer of answers.filter(({ status }) => status !== 201))
    expect(answer).toMatchObject({ status: 409, body: { code: "merchant_exists" } });
  const shouted = { merchantName: "CAFé ZOë", merchantEmail: "Zoe@Example.test" };
  expect(await create(shouted)).toMatchObject({ status: 409, body: { code: "merchant_exists" } });
  const branch = await make(headers, { ...shop, merchantName: "Café Zoë II" });
  const path = `/v1/merchants/${branch["id"]}`;
  expect(await api.patch(path, headers, shouted)).toMatchObject({ status: 409, body: { code: "merchant_exists" } });
  expect(await api.patch(path, headers, { merchantName: "Café Zoë II" })).toMatchObject({ status: 200 });
  expect((await api.get("/v1/merchants", headers)).body["totalCount"]).toBe(2);
  // Another account or mode, or the place of a deleted merchant, is free.
  await make(await newOwner("test"));
  await make(await newOwner());
  await api.delete(path, headers);
  await make(headers, { ...shop, merchantName: "Café Zoë II" });
});

test("an empty change and an invalid cursor, limit or status are refused", async () => {
  const made = await make(owner, { ...shop, merchantName: "Another café" });
  const noSuchDay = Buffer.from(JSON.stringify(["2026-02-31T00:00:00.000Z", made["id"]])).toString("base64url");
  for (const answer of [
    await api.patch(`/v1/merchants/${made["id"]}`, owner, {}),
    await api.get("/v1/merchants?cursor=abc", owner),
    await api.get(`/v1/merchants?cursor=${noSuchDay}`, owner),
    await api.get("/v1/merchants?limit=101", owner),
    await api.get("/v1/merchants?limit=0", owner),
    await api.get("/v1/merchants?status=gone", owner),
  ])
    expect(answer).toMatchObject({ status: 400, body: { code: "params_validation" } });
});

test.each([
  ["text that is not a cursor", "abc"],
  ["a day that no month has", ["2026-02-30T00:00:00.000Z", "mrch_1"]],
  ["an hour that no day has", ["2026-02-28T24:00:00.000Z", "mrch_1"]],
  ["a year before the first", ["0000-01-01T00:00:00.000Z", "mrch_1"]],
  ["a missing id", ["2026-02-28T00:00:00.000Z", null]],
])("a cursor that contains %s is refused", async (_what, held) => {
  const cursor = typeof held === "string" ? held : Buffer.from(JSON.stringify(held)).toString("base64url");
  const paths = ["/v1/merchants", "/v1/payments"];
  for (const path of paths)
    expect(await api.get(`${path}?cursor=${cursor}`, owner)).toMatchObject({
      status: 400,
      body: { code: "params_validation", message: expect.stringContaining("cursor: ") },
    });
});

test("a given logo is copied and resized, and a changed picture at the same URL is copied only at the next change", async () => {
  picture = { body: large };
  const merchant = await makeMerchant(api);
  const path = `/v1/merchants/${merchant.merchantId}`;
  const shown = async () => {
    const paymentId = await makePayment(api, merchant);
    const { body } = await api.get(`/v1/gateway/payment/${paymentId}`, merchant.headers);
    return (body["merchant"] as { iconUrl?: string }).iconUrl;
  };
  expect(await shown()).toBeUndefined();
  const changed = await api.patch(path, merchant.headers, { iconUrl });
  expect(changed.body["merchant"]).toMatchObject({ iconUrl });
  const { servedIconUrl: first } = changed.body["merchant"] as { servedIconUrl: string };
  expect(first).toMatch(/^https:\/\/pay\.example\.test\/logos\/[0-9a-f]{64}$/);
  expect(await shown()).toBe(first);

  const served = await fetch(`${api.url}${new URL(first).pathname}`);
  expect(served.status).toBe(200);
  expect(served.headers.get("content-type")).toBe("image/webp");
  expect(served.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(served.headers.get("x-content-type-options")).toBe("nosniff");
  const copy = Buffer.from(await served.arrayBuffer());
  expect(await sharp(copy).metadata()).toMatchObject({ format: "webp", width: 160, height: 160 });
  expect(copy.length).toBeLessThan(large.length / 10);
  const etag = served.headers.get("etag") ?? "";
  const before = api.statements.count;
  const cached = await fetch(`${api.url}${new URL(first).pathname}`, { headers: { "if-none-match": etag } });
  expect([cached.status, api.statements.count]).toEqual([304, before]);

  picture = { body: square };
  expect(await shown()).toBe(first);
  await api.patch(path, merchant.headers, { iconUrl });
  expect(await shown()).not.toBe(first);
  const removed = await api.patch(path, merchant.headers, { iconUrl: null });
  expect(removed.body["merchant"]).toMatchObject({ iconUrl: null, servedIconUrl: null });
  expect(await shown()).toBeUndefined();
  expect(await api.get(`/logos/${"0".repeat(64)}`)).toMatchObject({ status: 404, body: { code: "invalid_params" } });
});

test.each([
  ["that is small", { body: await plain(100, 100).png().toBuffer() }, "iconUrl: is 100 x 100 pixels"],
  ["that is truncated", { body: large.subarray(0, -1_000) }, "iconUrl: the image is truncated"],
  [
    "that is not a picture, whatever its content type",
    { body: "<svg/>", type: "image/png" },
    "iconUrl: is not a complete JPEG",
  ],
  ["that does not exist", { body: "", status: 404 }, "iconUrl: the server answered 404"],
  ["of more than 2 MiB", { body: Buffer.concat([square, Buffer.alloc(2 * 1024 * 1024)]) }, "iconUrl: is larger"],
])("a logo %s creates no merchant", async (_what, given, message) => {
  picture = given;
  const answer = await api.post("/v1/merchants", { ...owner, ...fresh() }, { ...shop, iconUrl });
  expect(answer).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(answer.body["message"]).toContain(message);
});
