import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { deleteExpiredResponses } from "../../../../payments/idempotency-keys.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { startFleet } from "../../../support/fleet.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { countRows, makeKey, makeMerchant, startApi } from "../start-api.ts";

const api = await startApi();
const twin = await startApi({ databaseUrl: api.databaseUrl });
const shop = { merchantName: "Second shop", merchantEmail: "second@example.test" };
const fresh = () => ({ "idempotency-key": randomUUID() });

test("16 concurrent requests with one key, over two processes, create one merchant and get 16 equal responses", async () => {
  const { headers } = await makeMerchant(api);
  const before = (await api.get("/v1/merchants", headers)).body["totalCount"] as number;
  const key = fresh();
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, index) =>
      (index % 2 ? twin : api).post("/v1/merchants", { ...headers, ...key }, shop),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(answers.filter((answer) => answer.headers.get("idempotent-replayed") === "true")).toHaveLength(15);
  expect((await api.get("/v1/merchants", headers)).body["totalCount"]).toBe(before + 1);
});

test.each(["/v1/payments", "/v1/merchant/payment"])(
  "32 concurrent requests to %s with one key create one payment",
  async (path) => {
    const { headers } = await makeMerchant(api);
    const before = (await countRows(api)) as { payments: number };
    const key = fresh();
    const body = { amount: { unit: "iso4217/USD", value: "500" } };
    const answers = await Promise.all(Array.from({ length: 32 }, () => api.post(path, { ...headers, ...key }, body)));
    expect(new Set(answers.map((answer) => JSON.stringify([answer.status, answer.body]))).size).toBe(1);
    expect(answers[0]?.status).toBe(201);
    expect(((await countRows(api)) as { payments: number }).payments).toBe(Number(before.payments) + 1);
  },
);

test("a request without a key creates a new payment each time", async () => {
  const { headers } = await makeMerchant(api);
  const ask = () => api.post("/v1/payments", headers, { amount: { unit: "iso4217/USD", value: "500" } });
  expect((await ask()).body["id"]).not.toBe((await ask()).body["id"]);
});

test("a used key with another body is a conflict, and the same body in another member order is not", async () => {
  const { headers } = await makeMerchant(api);
  const key = { ...headers, ...fresh() };
  const first = await api.post("/v1/merchants", key, shop);
  const reordered = { merchantEmail: shop.merchantEmail, merchantName: shop.merchantName };
  expect((await api.post("/v1/merchants", key, reordered)).body).toEqual(first.body);
  const other = await api.post("/v1/merchants", key, { ...shop, merchantName: "Other" });
  expect(other).toMatchObject({ status: 409, body: { code: "idempotency_conflict" } });
});

test("the order of members does not matter at any depth, and the order of a list does", async () => {
  const { headers, merchantId } = await makeMerchant(api);
  const key = { ...headers, ...fresh() };
  const path = `/v1/merchants/${merchantId}/settlements/crypto`;
  const entry = (byte: string) => ({
    asset: `eip155:31337/erc20:0x${byte.repeat(20)}`,
    destination: `eip155:31337:0x${"d1".repeat(20)}`,
  });
  const reordered = ({ asset, destination }: ReturnType<typeof entry>) => ({ destination, asset });
  const first = await api.post(path, key, { settlements: [entry("e1"), entry("e2")] });
  expect(first.status).toBe(201);
  expect((await api.post(path, key, { settlements: [reordered(entry("e1")), reordered(entry("e2"))] })).body).toEqual(
    first.body,
  );
  expect(await api.post(path, key, { settlements: [entry("e2"), entry("e1")] })).toMatchObject({
    status: 409,
    body: { code: "idempotency_conflict" },
  });
});

test("a body that is nested deeper than the stack is replayed like any other", async () => {
  const { headers } = await makeMerchant(api);
  const key = { ...headers, ...fresh(), "content-type": "application/json" };
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const ask = (depth: number) => {
    const text = `{"amount":{"unit":"iso4217/USD","value":"100"},"more":${nested(depth)}}`;
    return api.ask("POST", "/v1/payments", { headers: key, text });
  };
  const first = await ask(30_000);
  expect(first.status).toBe(201);
  expect((await ask(30_000)).body).toEqual(first.body);
  expect(await ask(29_999)).toMatchObject({ status: 409, body: { code: "idempotency_conflict" } });
});

test("a key belongs to one account, mode and operation", async () => {
  const mine = await makeMerchant(api, { mode: "live" });
  const { key: testKey } = await makeKey(api, {
    accountId: mine.accountId,
    mode: "test",
    scopes: ["merchants"],
  });
  const theirs = await makeMerchant(api);
  const key = fresh();
  const made = [mine.headers, { "api-key": testKey }, theirs.headers].map((headers) =>
    api.post("/v1/merchants", { ...headers, ...key }, shop),
  );
  const ids = (await Promise.all(made)).map(({ body }) => (body["merchant"] as { id: string }).id);
  expect(new Set(ids).size).toBe(3);
  const body = { amount: { unit: "iso4217/USD", value: "1" } };
  expect((await api.post("/v1/payments", { ...mine.headers, ...key }, body)).status).toBe(201);
});

test("a refused request stores nothing, so a corrected one may reuse its key", async () => {
  const { headers } = await makeMerchant(api);
  const key = { ...headers, ...fresh() };
  expect((await api.post("/v1/merchants", key, { ...shop, merchantEmail: "?" })).status).toBe(400);
  const settlements = [{ asset: `eip155:31337/erc20:0x${"a1".repeat(20)}`, destination: "eip155:31337:0x00" }];
  const path = `/v1/merchants/${headers["merchant-id"]}/settlements/crypto`;
  expect((await api.post(path, key, { settlements })).status).toBe(400);
  expect((await api.post("/v1/merchants", key, shop)).status).toBe(201);
});

test.each([
  ["is missing", undefined],
  ["is empty", ""],
  ["is too long", "x".repeat(256)],
  ["holds a tab", "a\tb"],
])("a request that requires a key does nothing when the key %s", async (_what, value) => {
  const { headers } = await makeMerchant(api);
  const answer = await api.post(
    "/v1/merchants",
    { ...headers, ...(value === undefined ? {} : { "idempotency-key": value }) },
    shop,
  );
  expect(answer).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(answer.body["message"]).toContain("Idempotency-Key");
});

test("a key may hold blanks", async () => {
  const { headers } = await makeMerchant(api);
  const ask = () => api.post("/v1/merchants", { ...headers, "idempotency-key": "order 12" }, shop);
  const [first, second] = [await ask(), await ask()];
  expect([first.status, second.body]).toEqual([201, first.body]);
});

test("a key that is not ASCII is refused, and so is an empty optional one", async () => {
  const { headers } = await makeMerchant(api);
  const foreign = await api.post("/v1/merchants", { ...headers, "idempotency-key": "clé" }, shop);
  expect(foreign).toMatchObject({ status: 400, body: { code: "header_not_ascii" } });
  const body = { amount: { unit: "iso4217/USD", value: "1" } };
  const empty = await api.post("/v1/payments", { ...headers, "idempotency-key": "" }, body);
  expect(empty).toMatchObject({ status: 400, body: { code: "params_validation" } });
});

test("responses are stored for a day and then deleted", async () => {
  const { headers } = await makeMerchant(api);
  const key = { ...headers, ...fresh() };
  const first = await api.post("/v1/merchants", key, shop);
  const later = (hours: number) => ({ ...api.deps, now: () => new Date(Date.now() + hours * 3_600_000) });
  expect(await deleteExpiredResponses(later(23.9), 10_000)).toBe(0);
  expect((await api.post("/v1/merchants", key, shop)).body).toEqual(first.body);
  expect(await deleteExpiredResponses(later(24.1), 1)).toBe(1);
  await deleteExpiredResponses(later(24.1), 10_000);
  expect((await api.post("/v1/merchants", key, shop)).body).not.toEqual(first.body);
});

test("a process killed during the work stores nothing, and the repeated request does it once", async () => {
  const fleet = await startFleet({ chain: await startChain(), workers: 0, apis: 2 });
  const [first, second] = fleet.apis;
  if (!first || !second) throw new Error("two processes are needed");
  const count = async () => Number((await execute(fleet.databaseUrl, "select count(*) from merchant"))[0]?.["count"]);
  const before = await count();
  const headers = { "api-key": fleet.shop.caller.apiKey, "content-type": "application/json", ...fresh() };
  const ask = (url: string) => fetch(`${url}/v1/merchants`, { method: "POST", headers, body: JSON.stringify(shop) });
  // The work waits inside its transaction for a lock that this test holds.
  const blocker = openDb(fleet.databaseUrl, { max: 1 });
  await blocker.transaction().execute(async (lock) => {
    await sql`lock table merchant in exclusive mode`.execute(lock);
    const lost = ask(first.url).catch(() => "lost");
    const waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    await waitFor(async () => (await execute(fleet.databaseUrl, waiting)).length > 0, { within: 10_000 });
    await first.kill("SIGKILL");
    expect(await lost).toBe("lost");
  });
  await blocker.destroy();
  const [one, two] = await Promise.all([ask(second.url), ask(second.url)]);
  expect([one.status, two.status]).toEqual([201, 201]);
  expect(await one.json()).toEqual(await two.json());
  expect(await count()).toBe(before + 1);
});

test("a database connection that is cut during the work stores nothing", async () => {
  const { headers } = await makeMerchant(api);
  const key = { ...headers, ...fresh() };
  const total = async () => (await api.get("/v1/merchants", headers)).body["totalCount"] as number;
  const before = await total();
  const cut = await api.db.transaction().execute(async (lock) => {
    await sql`lock table merchant in exclusive mode`.execute(lock);
    const asking = twin.post("/v1/merchants", key, shop);
    const kill = `select pg_terminate_backend(pid) from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`;
    await waitFor(async () => (await execute(api.databaseUrl, kill)).length > 0, { within: 10_000 });
    return asking;
  });
  expect(cut).toMatchObject({ status: 503, body: { code: "internal_error" } });
  expect(await total()).toBe(before);
  expect((await twin.post("/v1/merchants", key, shop)).status).toBe(201);
  expect(await total()).toBe(before + 1);
});

test("a payment whose response could not be stored is rolled back", async () => {
  const { headers } = await makeMerchant(api);
  const key = { ...headers, ...fresh() };
  const body = { amount: { unit: "iso4217/USD", value: "500" } };
  const payments = async () => Number(((await countRows(api)) as { payments: number }).payments);
  const before = await payments();
  // Storing the response waits for a lock that this test holds.
  await sql`create function wait_for_test() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(1); return new; end $$`.execute(api.db);
  await sql`create trigger wait_for_test before insert on idempotency
    for each row execute function wait_for_test()`.execute(api.db);
  const cut = await api.db.connection().execute(async (lock) => {
    await sql`select pg_advisory_lock(1)`.execute(lock);
    const asking = api.post("/v1/payments", key, body);
    const kill = `select pg_terminate_backend(pid) from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`;
    await waitFor(async () => (await execute(api.databaseUrl, kill)).length > 0, { within: 10_000 });
    const answer = await asking;
    await sql`select pg_advisory_unlock(1)`.execute(lock);
    return answer;
  });
  expect(cut).toMatchObject({ status: 503, body: { code: "internal_error" } });
  expect(await payments()).toBe(before);
  const retried = await api.post("/v1/payments", key, body);
  expect(retried.status).toBe(201);
  expect(await payments()).toBe(before + 1);
  expect((await api.post("/v1/payments", key, body)).body).toEqual(retried.body);
});

test("a key that the sweep deletes while a request with it waits is free, so the request is carried out", async () => {
  const { headers } = await makeMerchant(api);
  const key = { ...headers, ...fresh() };
  const ask = () => api.post("/v1/payments", key, { amount: { unit: "iso4217/USD", value: "500" } });
  const first = await ask();
  const old = new Date(Date.now() - 25 * 60 * 60_000);
  await api.db.updateTable("idempotency").set({ created_at: old }).where("key", "=", key["idempotency-key"]).execute();
  // Deletes old keys, as the sweep does, between the statement that finds the key taken and the one that reads its response.
  await sql`create function delete_old_keys() returns trigger language plpgsql security definer as $$
    begin delete from public.idempotency where created_at < now() - interval '24 hours'; return null; end $$`.execute(
    api.db,
  );
  await sql`create trigger delete_old_keys after insert on idempotency for each statement execute function delete_old_keys()`.execute(
    api.db,
  );
  onTestFinished(async () => void (await sql`drop function delete_old_keys cascade`.execute(api.db)));
  const second = await ask();
  expect(second).toMatchObject({ status: 201, body: { id: expect.stringMatching(/^pay_/) } });
  expect(second.body["id"]).not.toBe(first.body["id"]);
  const repeated = await ask();
  expect(repeated.body).toEqual(second.body);
  expect(repeated.headers.get("idempotent-replayed")).toBe("true");
});
