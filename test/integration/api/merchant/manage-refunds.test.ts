import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { makeMerchant, makePayment, movePayment, startApi } from "../start-api.ts";

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
    { paymentId: id, refundId: expect.stringMatching(/^rfnd_[0-9a-f]{32}$/) },
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
  expect(await part(String(value))).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(await refund(id)).toMatchObject({ status: 200, body: { paymentId: id } });
  expect(await part("1")).toMatchObject({ status: 409, body: { code: "already_refunded" } });
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
  await api.db.updateTable("refund").set({ state: "due" }).where("id", "=", refundId).execute();
  return refundId;
}
const withdraw = (refundId: string, headers = merchant.headers) =>
  api.post(`/v1/refunds/${refundId}/withdraw`, headers, {});
const list = (paymentId: string, headers = merchant.headers) => api.get(`/v1/payments/${paymentId}/refunds`, headers);

test("a waiting refund is listed and can be withdrawn, and its amount can be refunded again", async () => {
  const id = await makePaid();
  const refundId = await makeWaiting(id);
  expect((await list(id)).body).toMatchObject({ data: [{ refundId, paymentId: id, status: "waiting", paidAt: null }] });
  expect(await refund(id)).toMatchObject({ status: 409, body: { code: "already_refunded" } });
  const answers = await Promise.all(Array.from({ length: 8 }, () => withdraw(refundId)));
  for (const answer of answers)
    expect(answer).toMatchObject({ status: 200, body: { refundId, paymentId: id, status: "withdrawn" } });
  const moves = await api.db.selectFrom("event").select("to_state").where("subject", "=", refundId).execute();
  expect(moves.filter(({ to_state: to }) => to === "withdrawn")).toHaveLength(1);
  expect(await refund(id)).toMatchObject({ status: 200 });
  expect((await list(id)).body).toMatchObject({ data: [{ status: "withdrawn" }, { status: "marked" }] });
});

test("a refund that does not wait, or belongs to another merchant, cannot be withdrawn", async () => {
  const id = await makePaid();
  const { refundId } = (await refund(id)).body as { refundId: string };
  expect(await withdraw(refundId)).toMatchObject({
    status: 400,
    body: { code: "invalid_state", message: "the refund is marked" },
  });
  const stranger = await makeMerchant(api);
  const waiting = await makeWaiting(await makePaid());
  for (const [one, headers] of [
    [waiting, stranger.headers],
    [`rfnd_${"0".repeat(32)}`, merchant.headers],
    ["rfnd_1", merchant.headers],
  ] as const)
    expect(await withdraw(one, headers)).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
  expect(await list(id, stranger.headers)).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
  const { state } = await api.db
    .selectFrom("refund")
    .select("state")
    .where("id", "=", waiting)
    .executeTakeFirstOrThrow();
  expect(state).toBe("due");
});
