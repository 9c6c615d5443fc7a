import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { pageOfRefunds } from "../../../../db/queries/refunds.ts";
import { plantRefundState } from "../../../support/plant-state.ts";
import { asset, makeKey, makeMerchant, makePayment, movePayment, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const freshKey = () => ({ "idempotency-key": randomUUID() });
const refund = (paymentId: unknown, headers = merchant.headers) => api.post("/v1/refunds", headers, { paymentId });

async function makePaid(): Promise<string> {
  const id = await makePayment(api, merchant);
  await movePayment(api, id, "requires_action", "processing");
  await movePayment(api, id, "processing", "succeeded");
  return id;
}

test("a paid payment is marked as refunded once, also when many requests race", async () => {
  const id = await makePaid();
  const answers = await Promise.all(Array.from({ length: 16 }, () => refund(id)));
  expect(answers.filter(({ status }) => status === 200).map(({ body }) => body)).toEqual([
    {
      refundId: expect.stringMatching(/^rfnd_[0-9a-f]{32}$/),
      paymentId: id,
      merchantId: merchant.merchantId,
      referenceId: null,
      status: "succeeded",
      reason: null,
      amount: { unit: `caip19/${asset}`, value: "5000000", display: expect.objectContaining({ decimals: 6 }) },
      receiver: null,
      isRecordOnly: true,
      txId: expect.stringMatching(/^test:rfnd_/),
      createdAt: expect.any(String),
      lastUpdatedAt: expect.any(String),
      succeededAt: expect.any(String),
    },
  ]);
  const others = answers.filter(({ status }) => status !== 200);
  expect(new Set(others.map(({ status, body }) => `${status} ${body["code"]}`))).toEqual(
    new Set(["409 already_refunded"]),
  );
});

test("an unpaid payment cannot be refunded", async () => {
  const id = await makePayment(api, merchant);
  expect(await refund(id)).toMatchObject({ status: 400, body: { code: "payment_not_succeeded" } });
});

test("a payment that does not exist or belongs to another merchant cannot be refunded", async () => {
  const stranger = await makeMerchant(api);
  for (const [paymentId, headers] of [
    ["pay_1", merchant.headers],
    [await makePaid(), stranger.headers],
  ] as const)
    expect(await refund(paymentId, headers)).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
  for (const bad of ["", "x".repeat(65), 5, undefined])
    expect(await refund(bad)).toMatchObject({ status: 400, body: { code: "params_validation" } });
});

test("a partial refund names its amount, and all parts together never exceed the payment", async () => {
  const id = await makePaid();
  const part = (value: unknown, unit: unknown = "iso4217/USD") =>
    api.post("/v1/refunds", { ...merchant.headers, ...freshKey() }, { paymentId: id, amount: { unit, value } });
  for (const bad of ["0", "-1", 5, "1.5", undefined])
    expect(await part(bad)).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(await part("1", "iso4217/EUR")).toMatchObject({ status: 400, body: { code: "params_validation" } });
  const { value } = await api.db.selectFrom("payment").select("value").where("id", "=", id).executeTakeFirstOrThrow();
  expect(await part(String(value + 1n))).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(await part(String(value / 2n))).toMatchObject({ status: 200, body: { paymentId: id } });
  // What is left is named in the asset that was paid, whatever the unit of the request is.
  const message = expect.stringMatching(/ \(\d+ of caip19\/eip155:31337\/erc20:0x\w+ left\)$/);
  expect(await part(String(value))).toMatchObject({ status: 400, body: { code: "params_validation", message } });
  expect(await refund(id)).toMatchObject({ status: 200, body: { paymentId: id } });
  expect(await part("1")).toMatchObject({ status: 409, body: { code: "already_refunded" } });
});

test("a refund whose amount is misspelt refunds nothing, and the error names the member", async () => {
  const id = await makePaid();
  const body = { paymentId: id, ammount: { unit: "iso4217/USD", value: "5" } };
  expect(await api.post("/v1/refunds", { ...merchant.headers, ...freshKey() }, body)).toMatchObject({
    status: 400,
    body: { code: "params_validation", message: "ammount: is not known" },
  });
  expect(await api.db.selectFrom("refund").select("id").where("payment_id", "=", id).execute()).toEqual([]);
});

test("a refund whose amount is null refunds nothing: a shop that failed to compute a part does not refund everything", async () => {
  const id = await makePaid();
  const body = { paymentId: id, amount: null };
  expect(await api.post("/v1/refunds", { ...merchant.headers, ...freshKey() }, body)).toMatchObject({
    status: 400,
    body: { code: "params_validation", message: "amount: expected object, received null" },
  });
  expect(await api.db.selectFrom("refund").select("id").where("payment_id", "=", id).execute()).toEqual([]);
});

test("a partial refund that is repeated with its key is made once, also when the repeats race", async () => {
  const id = await makePaid();
  const headers = { ...merchant.headers, ...freshKey() };
  const ask = () => api.post("/v1/refunds", headers, { paymentId: id, amount: { unit: "iso4217/USD", value: "5" } });
  const answers = await Promise.all(Array.from({ length: 16 }, ask));
  expect(new Set(answers.map(({ status, body }) => `${status} ${JSON.stringify(body)}`)).size).toBe(1);
  const refunds = await api.db.selectFrom("refund").select("number").where("payment_id", "=", id).execute();
  expect(refunds).toEqual([{ number: 1 }]);
});

test("a partial refund without a key is refused, and a full one needs none", async () => {
  const id = await makePaid();
  const body = { paymentId: id, amount: { unit: "iso4217/USD", value: "5" } };
  expect(await api.post("/v1/refunds", merchant.headers, body)).toMatchObject({
    status: 400,
    body: { code: "params_validation", message: "Idempotency-Key: the header is missing" },
  });
  expect(await api.db.selectFrom("refund").select("id").where("payment_id", "=", id).execute()).toEqual([]);
  expect(await refund(id)).toMatchObject({ status: 200 });
});

/** A refund in test mode moves no money, so this one is set to wait as a live one does. */
async function makeWaiting(paymentId: string): Promise<string> {
  const { refundId } = (await refund(paymentId)).body as { refundId: string };
  await plantRefundState(api.db, refundId, "due");
  return refundId;
}
const withdraw = (refundId: string, headers = merchant.headers) =>
  api.post(`/v1/refunds/${refundId}/withdraw`, headers, {});
const read = (refundId: string, headers = merchant.headers) => api.get(`/v1/refunds/${refundId}`, headers);
const list = async (query: string, key = merchant.key) => {
  const { body } = await api.get(`/v1/refunds?${query}`, { "api-key": key });
  return { data: body["data"] as Record<string, unknown>[], nextCursor: body["nextCursor"] as string | null };
};

test("a pending refund is read and listed, can be withdrawn, and its amount can be refunded again", async () => {
  const id = await makePaid();
  const refundId = await makeWaiting(id);
  const pending = { refundId, paymentId: id, status: "pending", reason: null, txId: null, succeededAt: null };
  expect(await read(refundId)).toMatchObject({ status: 200, body: pending });
  expect(await list(`paymentId=${id}`)).toMatchObject({ data: [pending], nextCursor: null });
  expect(await refund(id)).toMatchObject({ status: 409, body: { code: "already_refunded" } });
  const refunded = async () => (await api.get(`/v1/payments/${id}`, merchant.headers)).body["refundedAmount"];
  const { optionAmount } = (await api.get(`/v1/payments/${id}`, merchant.headers)).body["info"] as {
    optionAmount: object;
  };
  expect(await refunded()).toEqual(optionAmount);
  const failed = { refundId, paymentId: id, status: "failed", reason: "withdrawn", txId: null };
  const answers = await Promise.all(Array.from({ length: 8 }, () => withdraw(refundId)));
  for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: failed });
  expect(await refunded()).toBeNull();
  const moves = await api.db.selectFrom("event").select("to_state").where("subject", "=", refundId).execute();
  expect(moves.filter(({ to_state: to }) => to === "withdrawn")).toHaveLength(1);
  expect(await read(refundId)).toMatchObject({ body: failed });
  expect(await refund(id)).toMatchObject({ status: 200 });
  expect((await list(`paymentId=${id}`)).data).toMatchObject([{ status: "succeeded" }, failed]);
});

test("a held refund names its reason, and HEAD answers like GET without a body", async () => {
  const refundId = await makeWaiting(await makePaid());
  await api.db.updateTable("refund").set({ state: "held" }).where("id", "=", refundId).execute();
  expect(await read(refundId)).toMatchObject({ body: { status: "held", reason: "screening" } });
  const head = await fetch(`${api.url}/v1/refunds/${refundId}`, { method: "HEAD", headers: merchant.headers });
  expect([head.status, await head.text()]).toEqual([200, ""]);
});

test("refunds are listed page by page, by merchant, by status and by time, and each once", async () => {
  const shop = await makeMerchant(api);
  const made: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const paymentId = await makePayment(api, shop);
    await movePayment(api, paymentId, "requires_action", "processing");
    await movePayment(api, paymentId, "processing", "succeeded");
    made.unshift((await refund(paymentId, shop.headers)).body["refundId"] as string);
  }
  await plantRefundState(api.db, made[1] ?? "", "due");
  const idsOf = (page: Awaited<ReturnType<typeof list>>) => page.data.map(({ refundId }) => refundId);
  const first = await list("limit=2", shop.key);
  const next = await list(`limit=2&cursor=${first.nextCursor}`, shop.key);
  expect([...idsOf(first), ...idsOf(next)]).toEqual(made);
  expect(next.nextCursor).toBeNull();
  expect(idsOf(await list(`merchantId=${shop.merchantId}`, shop.key))).toEqual(made);
  const ofHeader = async (merchantId: string, query = "") => {
    const answer = await api.get(`/v1/refunds${query}`, { "api-key": shop.key, "merchant-id": merchantId });
    return (answer.body["data"] as { refundId: string }[]).map(({ refundId }) => refundId);
  };
  expect(await ofHeader(shop.merchantId)).toEqual(made);
  expect(await ofHeader(`mrch_${"0".repeat(32)}`)).toEqual([]);
  expect(await ofHeader(`mrch_${"0".repeat(32)}`, `?merchantId=${shop.merchantId}`)).toEqual(made);
  expect(idsOf(await list("status=pending&status=held", shop.key))).toEqual([made[1]]);
  expect(idsOf(await list("status=succeeded", shop.key))).toEqual([made[0], made[2]]);
  const [oldest] = next.data;
  const since = encodeURIComponent(String(oldest?.["createdAt"]));
  expect(idsOf(await list(`endTs=${since}`, shop.key))).toEqual([]);
  expect(idsOf(await list(`startTs=${since}`, shop.key))).toEqual(made);
  for (const bad of [
    "payment_id=x",
    "status[]=pending",
    "status=paid",
    "cursor=x",
    "limit=0",
    "paymentId=x",
    "startTs=yesterday",
  ])
    expect(await api.get(`/v1/refunds?${bad}`, { "api-key": shop.key })).toMatchObject({
      status: 400,
      body: { code: "params_validation" },
    });
});

test("a refund of another account or of the other mode is not found and not listed", async () => {
  const id = await makePaid();
  const refundId = (await refund(id)).body["refundId"] as string;
  const stranger = await makeMerchant(api);
  const { key: liveKey } = await makeKey(api, {
    accountId: merchant.accountId,
    mode: "live",
    scopes: ["payments:read"],
  });
  for (const headers of [stranger.headers, { ...merchant.headers, "api-key": liveKey }])
    expect(await read(refundId, headers)).toMatchObject({ status: 404, body: { code: "refund_not_found" } });
  for (const key of [stranger.key, liveKey]) expect((await list(`paymentId=${id}`, key)).data).toEqual([]);
  expect((await list(`merchantId=${merchant.merchantId}`, stranger.key)).data).toEqual([]);
});

test.each([
  ["of an account", {}],
  ["of a merchant", { merchantIds: [merchant.merchantId] }],
  ["of a payment", { paymentId: `pay_${"0".repeat(32)}` }],
])("the list of refunds %s reads an index in its order", async (_whose, filter) => {
  const owner = { accountId: merchant.accountId, mode: "test" as const, onlyMerchants: null };
  const after = [new Date().toISOString(), "rfnd_1"] as const;
  const plan = await api.db.transaction().execute(async (db) => {
    await sql`set local enable_seqscan = off`.execute(db);
    await sql`set local enable_sort = off`.execute(db);
    const rows = await pageOfRefunds(db, { owner, ...filter, after }, 51).explain();
    return rows.map((row) => Object.values(row)[0]).join("\n");
  });
  expect(plan).toMatch(/using refund_(account|merchant|payment_id_number_key)/);
  expect(plan).not.toContain("Seq Scan on refund");
});

test("a refund that does not wait, or belongs to another merchant, cannot be withdrawn", async () => {
  const id = await makePaid();
  const { refundId } = (await refund(id)).body as { refundId: string };
  expect(await withdraw(refundId)).toMatchObject({
    status: 400,
    body: { code: "invalid_state", message: "the refund is succeeded" },
  });
  const stranger = await makeMerchant(api);
  const waiting = await makeWaiting(await makePaid());
  for (const [one, headers] of [
    [waiting, stranger.headers],
    [`rfnd_${"0".repeat(32)}`, merchant.headers],
    ["rfnd_1", merchant.headers],
  ] as const)
    expect(await withdraw(one, headers)).toMatchObject({ status: 404, body: { code: "refund_not_found" } });
  const { state } = await api.db
    .selectFrom("refund")
    .select("state")
    .where("id", "=", waiting)
    .executeTakeFirstOrThrow();
  expect(state).toBe("due");
});
