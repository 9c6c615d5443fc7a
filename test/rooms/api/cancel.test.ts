import { expect, test } from "vitest";
import { expirePayment } from "../../../payments/expire.ts";
import { makeMerchant, makePayment, movePayment, startApi } from "./start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const byUser = (id: string) => api.post(`/v1/gateway/payment/${id}/cancel`, merchant.wallet, {});
const byMerchant = (id: string) => api.post(`/v1/payments/${id}/cancel`, merchant.headers, {});
const status = async (id: string) => (await api.get(`/v1/payments/${id}/status`, merchant.headers)).body;

test.each([
  ["the buyer", byUser, "cancelled_by_user"],
  ["the merchant", byMerchant, "cancelled_by_merchant"],
])("%s cancels a payment that waits, and a repeat gets the same answer", async (_who, cancel, reason) => {
  const id = await makePayment(api, merchant);
  const first = await cancel(id);
  expect(first).toMatchObject({ status: 200, body: { paymentId: id, status: "cancelled", cancelledReason: reason } });
  expect(Date.parse(first.body.cancelledAt as string)).toBeLessThanOrEqual(Date.now());
  expect((await byUser(id)).body).toEqual(first.body);
  expect((await byMerchant(id)).body).toEqual(first.body);
  expect(await status(id)).toMatchObject({ status: "cancelled", isFinal: true, pollInMs: null, info: null });
});

test("the body may be missing, with a content type and without one", async () => {
  const path = async () => `/v1/payments/${await makePayment(api, merchant)}/cancel`;
  expect(await api.ask("POST", await path(), { headers: merchant.headers })).toMatchObject({ status: 200 });
  const headers = { ...merchant.headers, "content-type": "application/json" };
  expect(await api.ask("POST", await path(), { headers, text: "" })).toMatchObject({ status: 200 });
});

test.each(["processing", "succeeded", "failed", "expired"] as const)(
  "a payment that is %s is not cancelled",
  async (state) => {
    const id = await makePayment(api, merchant);
    if (state === "expired") await movePayment(api, id, "requires_action", "expired");
    else await movePayment(api, id, "requires_action", "processing");
    if (state === "succeeded" || state === "failed") await movePayment(api, id, "processing", state);
    for (const cancel of [byUser, byMerchant])
      expect(await cancel(id)).toMatchObject({
        status: 400,
        body: { code: "invalid_state", message: `the payment is ${state}` },
      });
    expect((await status(id)).status).toBe(state);
  },
);

test("who waits for the payment is told at once", async () => {
  const id = await makePayment(api, merchant);
  const waiting = api.get(`/v1/payments/${id}/status?maxPollMs=20000`, merchant.headers);
  await byUser(id);
  expect((await waiting).body).toMatchObject({ status: "cancelled" });
});

test("of a cancel, a deadline and a payment at once exactly one wins", async () => {
  for (let round = 0; round < 20; round += 1) {
    const id = await makePayment(api, merchant);
    await api.db
      .updateTable("payment")
      .set({ expires_at: new Date(Date.now() - 1) })
      .where("id", "=", id)
      .execute();
    const paying = movePayment(api, id, "requires_action", "processing").then(
      () => "processing",
      () => "",
    );
    await Promise.all([byUser(id), byMerchant(id), expirePayment(api.deps, id), paying]);
    const moves = await api.db.selectFrom("event").select("to_state").where("subject", "=", id).orderBy("id").execute();
    expect(moves).toHaveLength(2);
    expect((await status(id)).status).toBe(moves[1]?.to_state);
  }
});

test("a stranger's payment cannot be cancelled", async () => {
  const id = await makePayment(api, merchant);
  const stranger = await makeMerchant(api);
  expect(await api.post(`/v1/payments/${id}/cancel`, stranger.headers, {})).toMatchObject({
    status: 404,
    body: { code: "payment_not_found" },
  });
  expect((await status(id)).status).toBe("requires_action");
});
