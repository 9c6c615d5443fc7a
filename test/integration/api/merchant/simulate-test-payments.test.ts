import { expect, test } from "vitest";
import { asset, makeMerchant, makePayment, movePayment, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const simulate = (id: string, status: unknown, headers = merchant.headers) =>
  api.post(`/v1/payments/${id}/simulate`, headers, { status });

test("a waiting test payment can be simulated to every outcome, through the transitions of live payments", async () => {
  const moves = async (id: string) =>
    (await api.db.selectFrom("event").select("to_state").where("subject", "=", id).orderBy("id").execute()).map(
      (row) => row.to_state,
    );
  const simulateTo = async (state: string) => {
    const id = await makePayment(api, merchant);
    const answer = await simulate(id, state);
    expect(answer).toMatchObject({ status: 200, body: { status: state } });
    expect((await api.get(`/v1/payments/${id}/status`, merchant.headers)).body).toEqual(answer.body);
    return { id, body: answer.body, moves: await moves(id) };
  };
  const succeeded = await simulateTo("succeeded");
  expect(succeeded.body).toMatchObject({
    isFinal: true,
    info: { txId: `test:${succeeded.id}`, optionAmount: { unit: `caip19/${asset}`, value: "5000000" } },
  });
  expect(succeeded.moves).toEqual(["requires_action", "processing", "succeeded"]);
  const failed = await simulateTo("failed");
  expect(failed.body).toMatchObject({ isFinal: true, failureCode: "declined_user", info: null });
  expect(failed.moves).toEqual(["requires_action", "processing", "failed"]);
  expect((await simulateTo("expired")).moves).toEqual(["requires_action", "expired"]);
  expect((await simulateTo("cancelled")).moves).toEqual(["requires_action", "cancelled"]);
  const processing = await simulateTo("processing");
  expect(processing.body).toMatchObject({ isFinal: false, pollInMs: 1000 });
  expect(await simulate(processing.id, "succeeded")).toMatchObject({ status: 200, body: { status: "succeeded" } });
});

test("a simulation moves no payment out of a final state and cancels no processing payment", async () => {
  const id = await makePayment(api, merchant);
  await simulate(id, "processing");
  expect(await simulate(id, "cancelled")).toMatchObject({ status: 400, body: { code: "invalid_state" } });
  await simulate(id, "succeeded");
  for (const state of ["processing", "failed", "expired", "cancelled", "succeeded"])
    expect(await simulate(id, state)).toMatchObject({ status: 400, body: { code: "invalid_state" } });
});

test("a long poll returns as soon as the payment is simulated", async () => {
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

test("a live payment cannot be simulated, not even with its own key", async () => {
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

test("one of a racing simulation and transition wins, and the other gets an error", async () => {
  for (let round = 0; round < 10; round += 1) {
    const id = await makePayment(api, merchant);
    const [simulateTo] = await Promise.all([
      simulate(id, "expired"),
      movePayment(api, id, "requires_action", "processing").catch(() => undefined),
    ]);
    const { state } = await api.db.selectFrom("payment").select("state").where("id", "=", id).executeTakeFirstOrThrow();
    expect([simulateTo.status, state]).toEqual(simulateTo.status === 200 ? [200, "expired"] : [400, "processing"]);
  }
});

test.each([undefined, "requires_action", "paid", 1])("an invalid outcome is refused: %j", async (status) => {
  const id = await makePayment(api, merchant);
  expect(await simulate(id, status)).toMatchObject({ status: 400, body: { code: "params_validation" } });
});
