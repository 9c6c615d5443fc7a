import { sql } from "kysely";
import { expect, test } from "vitest";
import { selectPage } from "../../../../db/queries/payment-lists.ts";
import { listEvents } from "../../../../payments/webhooks/list-events.ts";
import { captureStatements } from "../../../support/explain-statements.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const shop = await makeMerchant(api);
const list = async (query: string) =>
  (await api.get(`/v1/merchants/payments?${query}`, shop.headers)).body["data"] as {
    paymentId: string;
    metadata: object;
  }[];

test("metadata and description come back in the payment, in lists and in webhooks", async () => {
  const annotations = { description: "Order 6735 – Größe M", metadata: { order: "6735", größe: "M", note: "" } };
  const id = await makePayment(api, shop, annotations);
  expect((await api.get(`/v1/payments/${id}`, shop.headers)).body).toMatchObject(annotations);
  expect(await list("")).toMatchObject([{ paymentId: id, ...annotations }]);
  const query = { accountId: shop.accountId, mode: "test" as const, limit: 10, payload: "full" as const };
  expect(unwrap(await listEvents(api.deps, query)).items.at(-1)?.data).toMatchObject({
    payment_id: id,
    ...annotations,
  });
  const plain = await makePayment(api, shop);
  expect((await api.get(`/v1/payments/${plain}`, shop.headers)).body).toMatchObject({
    description: null,
    metadata: {},
  });
});

test("a list can be narrowed to payments whose metadata has all of the given values", async () => {
  const [one, two] = [
    await makePayment(api, shop, { metadata: { channel: "web", order: "1:2" } }),
    await makePayment(api, shop, { metadata: { channel: "web", order: "3" } }),
  ];
  const ids = async (query: string) => (await list(query)).map(({ paymentId }) => paymentId);
  expect(await ids("metadata=channel:web")).toEqual([two, one]);
  expect(await ids("metadata=channel:web&metadata=order:1:2")).toEqual([one]);
  expect(await ids("metadata=channel:WEB")).toEqual([]);
  const { body } = await api.get("/v1/merchants/payments?metadata=channel", shop.headers);
  expect(body).toMatchObject({ code: "params_validation", message: "metadata: expected key:value, at most 10 times" });
  const twice = await api.get("/v1/merchants/payments?metadata=order:1&metadata=order:3", shop.headers);
  expect(twice.body).toMatchObject({ code: "params_validation", message: "metadata: expected each key once" });
  const plan = await api.db.transaction().execute(async (db) => {
    // Without the events of each payment.
    await sql`set local session_replication_role = replica`.execute(db);
    await sql`insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at)
      select 'pay_' || i, ${shop.accountId}, ${shop.merchantId}, 'test', 'iso4217/USD', i, 'requires_action', now(), now(), now()
      from generate_series(1, 5000) i`.execute(db);
    await sql`analyze payment`.execute(db);
    const filter = { accountId: shop.accountId, mode: "test" as const, metadata: { order: "3" } };
    const page = { order: { by: "date" as const, dir: "desc" as const }, limit: 5, matching: 1 };
    return (await selectPage(db, filter, page).explain()).map((row) => Object.values(row)[0]);
  });
  expect(plan.join("\n")).toContain("payment_metadata");
});

test.each([
  [{ metadata: { order: 6735 } }, "metadata.order: expected a string of at most 500 characters"],
  [{ metadata: { order: "x".repeat(501) } }, "metadata.order: expected a string of at most 500 characters"],
  [{ metadata: { order: "a\0b" } }, "metadata.order: expected a string of at most 500 characters"],
  [
    { metadata: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, "v"])) },
    "metadata: expected at most 50 keys",
  ],
  [
    { metadata: { "a:b": "x" } },
    "metadata.a:b: expected keys of 1 to 40 characters, without control characters, colons and brackets",
  ],
  [{ metadata: ["a"] }, "metadata: expected object, received array"],
  [{ description: "x".repeat(501) }, "description: expected at most 500 characters"],
])("a creation with %o is refused and names the field", async (more, message) => {
  const amount = { unit: "iso4217/USD", value: "500" };
  const { status, body } = await api.post("/v1/payments", shop.headers, { amount, ...more });
  expect([status, body]).toEqual([400, { code: "params_validation", message }]);
});

test("50 keys of 40 characters with values of 500 characters are stored, also of several bytes each", async () => {
  const entries = Array.from({ length: 50 }, (_, n) => [`${n}`.padStart(40, "k"), "x".repeat(500)]);
  const metadata = Object.fromEntries([...entries.slice(1), ["ключ", "я".repeat(500)]]);
  const id = await makePayment(api, shop, { metadata });
  expect((await api.get(`/v1/payments/${id}`, shop.headers)).body["metadata"]).toEqual(metadata);
});

test("a payment's statement as CSV is streamed to the merchant, and to no other account", async () => {
  const get = (path: string, headers: Record<string, string>) => fetch(`${api.url}${path}`, { headers });
  const period = "from=2026-01-01&until=2026-12-31";
  const path = `/v1/merchants/${shop.merchantId}/statement.csv?${period}`;
  const answer = await get(path, shop.headers);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/csv; charset=utf-8"]);
  expect(answer.headers.get("content-disposition")).toBe('attachment; filename="statement-2026-01-01-2026-12-31.csv"');
  expect((await answer.text()).startsWith("merchantId,asset,decimals,at,kind,")).toBe(true);
  const stranger = await makeMerchant(api);
  expect((await get(path, stranger.headers)).status).toBe(404);
  expect((await get(path, {})).status).toBe(401);
  expect((await get("/v1/statement.csv?from=2026-02-01&until=2026-01-01", shop.headers)).status).toBe(400);
  expect((await get(`/v1/statement.csv?${period}`, shop.headers)).status).toBe(200);
});

test.each([
  ["a merchant", () => `/v1/merchants/${shop.merchantId}/statement.csv`, /from ledger_day/],
  ["the account", () => "/v1/statement.csv", /from "merchant" .* order by "id"/],
])("HEAD of a statement of %s is answered without reading its lines", async (_whose, path, reads) => {
  const url = `${api.url}${path()}?from=2026-01-01&until=2026-12-31`;
  const request = async (method: "GET" | "HEAD") => {
    const answer = await fetch(url, { method, headers: shop.headers });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };
  const answers: Awaited<ReturnType<typeof request>>[] = [];
  const send = async (method: "GET" | "HEAD") => {
    const sent = await captureStatements(async () => void answers.push(await request(method)));
    return sent.some(({ text }) => reads.test(text));
  };
  expect([await send("GET"), await send("HEAD")]).toEqual([true, false]);
  const [got, head] = answers;
  expect([head?.status, head?.text]).toEqual([200, ""]);
  for (const name of ["content-type", "content-disposition"])
    expect(head?.headers.get(name)).toBe(got?.headers.get(name));
  expect((await fetch(url, { method: "HEAD" })).status).toBe(401);
});
