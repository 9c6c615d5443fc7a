import { expect, test } from "vitest";
import { insertAttempt } from "../../../../db/queries/attempts.ts";
import { setWalletCancellationAllowed } from "../../../../db/queries/requesters.ts";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { makeKey, makeMerchant, makePayment, movePayment, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const accounts = [`eip155:31337:0x${"c1".repeat(20)}`];
const request = (id: string, wallet: Record<string, string>) =>
  api.post(`/v1/gateway/payment/${id}/options`, wallet, { accounts });
const cancelAs = (id: string, caller: Record<string, string>) =>
  api.post(`/v1/gateway/payment/${id}/cancel`, caller, {});
/** Cancels as the buyer's wallet, which requests the options first. */
const byUser = async (id: string) => {
  await request(id, merchant.wallet);
  return cancelAs(id, merchant.wallet);
};
const byMerchant = (id: string) => api.post(`/v1/payments/${id}/cancel`, merchant.headers, {});
const status = async (id: string) => (await api.get(`/v1/payments/${id}/status`, merchant.headers)).body;

test.each([
  ["the buyer", byUser, "cancelled_by_user"],
  ["the merchant", byMerchant, "cancelled_by_merchant"],
])("%s cancels a waiting payment, and a repeated cancel gets the same response", async (_who, cancel, reason) => {
  const id = await makePayment(api, merchant);
  const first = await cancel(id);
  expect(first).toMatchObject({ status: 200, body: { paymentId: id, status: "cancelled", cancelledReason: reason } });
  expect(Date.parse(first.body["cancelledAt"] as string)).toBeLessThanOrEqual(Date.now());
  expect((await byUser(id)).body).toEqual(first.body);
  expect((await byMerchant(id)).body).toEqual(first.body);
  expect(await status(id)).toMatchObject({ status: "cancelled", isFinal: true, pollInMs: null, info: null });
});

test("a cancel may omit the body, with and without a content type", async () => {
  const path = async () => `/v1/payments/${await makePayment(api, merchant)}/cancel`;
  expect(await api.ask("POST", await path(), { headers: merchant.headers })).toMatchObject({ status: 200 });
  const headers = { ...merchant.headers, "content-type": "application/json" };
  expect(await api.ask("POST", await path(), { headers, text: "" })).toMatchObject({ status: 200 });
});

test.each(["processing", "succeeded", "failed", "expired"] as const)(
  "a payment that is %s cannot be cancelled",
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
    expect((await status(id))["status"]).toBe(state);
  },
);

test("a long poll returns as soon as the payment is cancelled", async () => {
  const id = await makePayment(api, merchant);
  const waiting = api.get(`/v1/payments/${id}/status?maxPollMs=20000`, merchant.headers);
  await byUser(id);
  expect((await waiting).body).toMatchObject({ status: "cancelled" });
});

test("exactly one of a racing cancel, deadline and payment wins", async () => {
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
    expect((await status(id))["status"]).toBe(moves[1]?.to_state);
  }
});

test("a merchant cannot cancel another account's payment", async () => {
  const id = await makePayment(api, merchant);
  const stranger = await makeMerchant(api);
  expect(await api.post(`/v1/payments/${id}/cancel`, stranger.headers, {})).toMatchObject({
    status: 404,
    body: { code: "payment_not_found" },
  });
  expect((await status(id))["status"]).toBe("requires_action");
});

const refusedWith = (message: string) => ({ status: 400, body: { code: "invalid_state", message } });
const onlyTheWallet = refusedWith("only the wallet that has requested this payment's options may cancel it");
const onlyTheMerchant = refusedWith("others have requested this payment's options: only the merchant may cancel it");

test("an app id that has not requested the options cannot cancel the payment, whatever its account", async () => {
  const stranger = await makeMerchant(api);
  const id = await makePayment(api, merchant);
  for (const wallet of [
    { ...stranger.wallet, "client-id": "x" },
    { ...merchant.wallet, "client-id": "x" },
  ])
    expect(await cancelAs(id, wallet)).toMatchObject(onlyTheWallet);
  await request(id, merchant.wallet);
  expect(await cancelAs(id, { ...merchant.wallet, "client-id": "x" })).toMatchObject(onlyTheWallet);
  expect((await status(id))["status"]).toBe("requires_action");
  expect(await cancelAs(id, merchant.wallet)).toMatchObject({ status: 200 });
});

test("a wallet of any account cancels while it alone has requested the options, however often", async () => {
  const { wallet, accountId } = await makeMerchant(api);
  const id = await makePayment(api, merchant);
  for (let time = 0; time < 3; time += 1) await request(id, wallet);
  expect(await cancelAs(id, wallet)).toMatchObject({ status: 200, body: { cancelledReason: "cancelled_by_user" } });
  const other = await makePayment(api, merchant);
  const { key } = await makeKey(api, { accountId, mode: "test", scopes: ["gateway"] });
  await request(other, { "api-key": key, "client-id": "phone" });
  expect(await cancelAs(other, { "api-key": key, "client-id": "phone" })).toMatchObject({ status: 200 });
});

test("a key without a Client-Id does not identify one wallet, and cancels only its own account's payments", async () => {
  const { accountId } = await makeMerchant(api);
  const { key } = await makeKey(api, { accountId, mode: "test", scopes: ["gateway"] });
  const id = await makePayment(api, merchant);
  await request(id, { "api-key": key });
  expect(await cancelAs(id, { "api-key": key })).toMatchObject(onlyTheWallet);
  const { key: walletKey } = await makeKey(api, { accountId: merchant.accountId, mode: "test", scopes: ["gateway"] });
  expect(await cancelAs(id, { "api-key": walletKey })).toMatchObject(onlyTheWallet);
  expect(await cancelAs(id, { "api-key": merchant.key })).toMatchObject({ status: 200 });
});

test("only the merchant cancels once another wallet or the checkout page has requested the options", async () => {
  const stranger = await makeMerchant(api);
  const another = (id: string) => request(id, { ...stranger.wallet, "client-id": "x" });
  const page = (id: string) => api.post(`/checkout/${id}/options`, {}, { accounts });
  for (const second of [another, page]) {
    const id = await makePayment(api, merchant);
    await request(id, merchant.wallet);
    expect(await second(id)).toMatchObject({ status: 200 });
    await request(id, merchant.wallet);
    expect(await cancelAs(id, merchant.wallet)).toMatchObject(onlyTheMerchant);
    expect(await cancelAs(id, { "api-key": merchant.key })).toMatchObject({ status: 200 });
  }
});

test("a payment stores its first requester and whether there was another, however many there are", async () => {
  const id = await makePayment(api, merchant);
  const wallets = Array.from({ length: 12 }, (_one, index) => ({ ...merchant.wallet, "client-id": `phone ${index}` }));
  await Promise.all(wallets.map((wallet) => request(id, wallet)));
  const row = await api.db
    .selectFrom("payment")
    .select(["requester", "has_other_requesters"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  expect(row).toEqual({ requester: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/), has_other_requesters: true });
  for (const wallet of wallets) expect(await cancelAs(id, wallet)).toMatchObject({ status: 400 });
});

test("a wallet cannot cancel while a confirm is being verified, and the merchant can", async () => {
  const id = await makePayment(api, merchant);
  const { body } = await request(id, merchant.wallet);
  const [option] = body["options"] as [{ id: string }];
  await insertAttempt(api.db, {
    id: `att_${id}`,
    payment_id: id,
    option_id: option.id,
    digest: Buffer.alloc(32),
    results: "[]",
    state: "waiting",
    refusal: null,
    created_at: new Date(),
    due_at: null,
  });
  expect(await cancelAs(id, merchant.wallet)).toMatchObject(refusedWith("a confirm of this payment is being verified"));
  expect(await byMerchant(id)).toMatchObject({ status: 200 });
});

test("only the account cancels its payments when it has disabled cancelling by wallets", async () => {
  const own = await makeMerchant(api);
  expect(await setWalletCancellationAllowed(api.db, { accountId: own.accountId, allow: false })).toBe(true);
  const id = await makePayment(api, own);
  await request(id, own.wallet);
  expect(await cancelAs(id, own.wallet)).toMatchObject(refusedWith("only the merchant may cancel this payment"));
  await setWalletCancellationAllowed(api.db, { accountId: own.accountId, allow: true });
  expect(await cancelAs(id, own.wallet)).toMatchObject({ status: 200 });
  const another = await makePayment(api, own);
  await setWalletCancellationAllowed(api.db, { accountId: own.accountId, allow: false });
  expect(await cancelAs(another, { "api-key": own.key })).toMatchObject({ status: 200 });
});

test("a checkout session that alone has requested the options cancels, and another browser cannot", async () => {
  const sessionOf = (answer: { headers: Headers }) => ({
    cookie: answer.headers.get("set-cookie")?.split(";")[0] ?? "",
  });
  const id = await makePayment(api, merchant);
  const page = await fetch(`${api.url}/?pid=${id}`);
  expect(page.headers.get("set-cookie")).toMatch(
    /^pay_session=[A-Za-z0-9_-]{22}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure$/,
  );
  const session = sessionOf(page);
  expect((await fetch(`${api.url}/?pid=${id}`, { headers: session })).headers.get("set-cookie")).toBeNull();
  const cancel = (headers: Record<string, string>) => api.post(`/checkout/${id}/cancel`, headers, {});
  expect(await cancel(session)).toMatchObject(onlyTheWallet);
  await api.post(`/checkout/${id}/options`, session, { accounts });
  const stranger = sessionOf(await fetch(`${api.url}/?pid=${id}`));
  expect(await cancel(stranger)).toMatchObject(onlyTheWallet);
  expect(await cancel({})).toMatchObject(onlyTheWallet);
  expect(await cancel(session)).toMatchObject({ status: 200, body: { status: "cancelled" } });
});
