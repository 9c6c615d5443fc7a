import { expect, test } from "vitest";
import { asset, makeMerchant, makePayment, movePayment, startApi } from "./start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const simulate = (id: string, status: unknown, headers = merchant.headers) =>
  api.post(`/v1/payments/${id}/simulate`, headers, { status });

test("a waiting test payment is driven to every outcome, by the moves that live payments make", async () => {
  const moves = async (id: string) =>
    (await api.db.selectFrom("event").select("to_state").where("subject", "=", id).orderBy("id").execute()).map(
      (row) => row.to_state,
    );
  const driven = async (state: string) => {
    const id = await makePayment(api, merchant);
    const answer = await simulate(id, state);
    expect(answer).toMatchObject({ status: 200, body: { status: state } });
    expect((await api.get(`/v1/payments/${id}/status`, merchant.headers)).body).toEqual(answer.body);
    return { id, body: answer.body, moves: await moves(id) };
  };
  const succeeded = await driven("succeeded");
  expect(succeeded.body).toMatchObject({
    isFinal: true,
    info: { txId: `test:${succeeded.id}`, optionAmount: { unit: `caip19/${asset}`, value: "5000000" } },
  });
  expect(succeeded.moves).toEqual(["requires_action", "processing", "succeeded"]);
  const failed = await driven("failed");
  expect(failed.body).toMatchObject({ isFinal: true, failureCode: "declined_user", info: null });
  expect(failed.moves).toEqual(["requires_action", "processing", "failed"]);
  expect((await driven("expired")).moves).toEqual(["requires_action", "expired"]);
  expect((await driven("cancelled")).moves).toEqual(["requires_action", "cancelled"]);
  const processing = await driven("processing");
  expect(processing.body).toMatchObject({ isFinal: false, pollInMs: 1000 });
  expect(await simulate(processing.id, "succeeded")).toMatchObject({ status: 200, body: { status: "succeeded" } });
});

test("no move leads out of an end, nor from paying to cancelled", async () => {
  const id = await makePayment(api, merchant);
  await simulate(id, "processing");
  expect(await simulate(id, "cancelled")).toMatchObject({ status: 400, body: { code: "invalid_state" } });
  await simulate(id, "succeeded");
  for (const state of ["processing", "failed", "expired", "cancelled", "succeeded"])
    expect(await simulate(id, state)).toMatchObject({ status: 400, body: { code: "invalid_state" } });
});

test("who waits for the payment is told", async () => {
  const id = await makePayment(api, merchant);
  const waiting = api.get(`/v1/gateway/payment/${id}/status?maxPollMs=20000`, merchant.wallet);
  await simulate(id, "succeeded");
  expect((await waiting).body).toMatchObject({ status: "succeeded" });
});

test("a payment that no asset of the merchant can pay does not succeed", async () => {
  const other = await makeMerchant(api);
  const id = await makePayment(api, other);
  await api.db.deleteFrom("settlement_destination").where("merchant_id", "=", other.merchantId).execute();
  expect(await simulate(id, "succeeded", other.headers)).toMatchObject({
    status: 400,
    body: { code: "invalid_state", message: "no asset that the merchant is paid in can pay iso4217/USD" },
  });
});

test("live payments cannot be driven, not even by their own key", async () => {
  const live = await makeMerchant(api, { mode: "live" });
  const id = await makePayment(api, live);
  expect(await simulate(id, "succeeded", live.headers)).toMatchObject({
    status: 400,
    body: { code: "not_sandbox_api_key" },
  });
  expect(await simulate(id, "succeeded")).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
  const moved = await api.db.selectFrom("payment").select("state").where("id", "=", id).executeTakeFirst();
  expect(moved).toEqual({ state: "requires_action" });
});

test("of a drive and a real move at once one wins, and the other is told", async () => {
  for (let round = 0; round < 10; round += 1) {
    const id = await makePayment(api, merchant);
    const [driven] = await Promise.all([
      simulate(id, "expired"),
      movePayment(api, id, "requires_action", "processing").catch(() => undefined),
    ]);
    const { state } = await api.db.selectFrom("payment").select("state").where("id", "=", id).executeTakeFirstOrThrow();
    expect([driven.status, state]).toEqual(driven.status === 200 ? [200, "expired"] : [400, "processing"]);
  }
});

test.each([undefined, "requires_action", "paid", 1])("an outcome that is none is refused: %j", async (status) => {
  const id = await makePayment(api, merchant);
  expect(await simulate(id, status)).toMatchObject({ status: 400, body: { code: "params_validation" } });
});
