import { privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Api,
  asset,
  makeMerchant,
  makePayment,
  movePayment,
  publicUrl,
  startApi,
  type TestMerchant,
} from "../start-api.ts";

let api: Api;
let shop: TestMerchant;
const buyer = privateKeyToAccount(`0x${"07".repeat(32)}`);
const account = `eip155:31337:${buyer.address}`;

beforeAll(async () => {
  api = await startApi();
  shop = await makeMerchant(api);
});

/** An Amount as wallets read it (specification, 2.3): all of these members, with these types. */
const amountOf = (unit: string, value: string, decimals: number) => ({
  unit,
  value,
  display: expect.objectContaining({ assetSymbol: expect.any(String), assetName: expect.any(String), decimals }),
});
const waiting = { status: "requires_action", isFinal: false, pollInMs: 1000 };

describe("a created payment", () => {
  test.each(["/v1/payments", "/v1/merchant/payment"])(
    "a payment created at %s has the member names of both families",
    async (path) => {
      const body = { amount: { unit: "iso4217/USD", value: "500" }, referenceId: "order 1" };
      const answer = await api.post(path, shop.headers, body);
      expect(answer.status).toBe(201);
      const paymentId = answer.body["paymentId"] as string;
      expect(paymentId).toMatch(/^pay_[0-9a-f]{32}$/);
      expect(answer.body).toEqual({
        id: paymentId,
        paymentId,
        gatewayUrl: `${publicUrl}/?pid=${paymentId}`,
        expiresAt: expect.any(Number),
        ...waiting,
        warnings: [],
      });
      expect(Number.isInteger(answer.body["expiresAt"])).toBe(true);
      expect(Math.abs((answer.body["expiresAt"] as number) - (Date.now() / 1000 + 300))).toBeLessThan(10);
    },
  );

  test("a payment lives until the time that its merchant gives", async () => {
    const expiresAt = Math.floor(Date.now() / 1000) + 3_600;
    const body = { amount: { unit: "iso4217/USD", value: "500" }, expiresAt };
    expect((await api.post("/v1/payments", shop.headers, body)).body["expiresAt"]).toBe(expiresAt);
  });
});

describe("a status", () => {
  const paths = (id: string): [string, Record<string, string>][] => [
    [`/v1/payments/${id}/status`, shop.headers],
    [`/v1/merchant/payment/${id}/status`, shop.headers],
    [`/v1/gateway/payment/${id}/status`, shop.wallet],
  ];

  test("a status is the same on all three paths, from waiting to paid", async () => {
    const id = await makePayment(api, shop);
    for (const [path, headers] of paths(id))
      expect((await api.get(path, headers)).body).toEqual({ ...waiting, info: null });
    await movePayment(api, id, "requires_action", "processing");
    for (const [path, headers] of paths(id))
      expect((await api.get(path, headers)).body).toEqual({ ...waiting, status: "processing", info: null });
    await movePayment(api, id, "processing", "succeeded");
    for (const [path, headers] of paths(id))
      expect((await api.get(path, headers)).body).toEqual({
        status: "succeeded",
        isFinal: true,
        pollInMs: null,
        info: { txId: `test:${id}`, optionAmount: amountOf(`caip19/${asset}`, "5000000", 6) },
      });
  });

  test("a failed payment has a failure code, which is null when it is unknown", async () => {
    const id = await makePayment(api, shop);
    await movePayment(api, id, "requires_action", "processing");
    await movePayment(api, id, "processing", "failed");
    const { body } = await api.get(`/v1/gateway/payment/${id}/status`, shop.wallet);
    expect(body).toEqual({ status: "failed", isFinal: true, pollInMs: null, info: null, failureCode: null });
  });
});

describe("the options of an account", () => {
  const ask = (id: string, query = "", accounts = [account]) =>
    api.post(`/v1/gateway/payment/${id}/options${query}`, shop.wallet, { accounts, refresh: null });

  test("an option has every member that a wallet needs", async () => {
    const id = await makePayment(api, shop);
    const answer = await ask(id);
    expect(answer.status).toBe(200);
    expect(answer.body).not.toHaveProperty("info");
    expect(answer.body["collectData"]).toBeNull();
    const [option] = answer.body["options"] as Record<string, unknown>[];
    expect(option).toEqual({
      id: expect.stringMatching(/^opt_/),
      optionId: option?.["id"],
      account,
      amount: amountOf(`caip19/${asset}`, "5000000", 6),
      etaS: expect.any(Number),
      expiresAt: null,
      actions: [
        {
          type: "walletRpc",
          data: {
            chain_id: "eip155:31337",
            method: "eth_signTypedData_v4",
            params: [buyer.address, expect.any(String)],
          },
        },
      ],
      collectData: null,
    });
    expect(Number.isInteger(option?.["etaS"])).toBe(true);
  });

  test("the options include the payment when the caller asks for it", async () => {
    const id = await makePayment(api, shop);
    const { body } = await ask(id, "?includePaymentInfo=true");
    const info = {
      paymentId: id,
      status: "requires_action",
      amount: amountOf("iso4217/USD", "500", 2),
      expiresAt: expect.any(Number),
      merchant: { name: "Shop" },
      buyer: null,
    };
    expect(body["info"]).toEqual(info);
    expect((await api.get(`/v1/gateway/payment/${id}`, shop.wallet)).body).toEqual(info);
    expect((await ask(id, "?includePaymentInfo=false")).body).not.toHaveProperty("info");
  });

  test("the options leave out accounts on unknown chains", async () => {
    const id = await makePayment(api, shop);
    const stranger = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:7S3P4HxJpyyigGzodYwHtCxZyUQe9JiBMHyRWXArAaKv";
    const { status, body } = await ask(id, "", [stranger, account]);
    expect(status).toBe(200);
    expect((body["options"] as { account: string }[]).map((option) => option.account)).toEqual([account]);
  });

  test("fetch with empty data returns all actions of an option again", async () => {
    const id = await makePayment(api, shop);
    const [option] = (await ask(id)).body["options"] as { id: string; actions: unknown[] }[];
    const fetched = await api.post(`/v1/gateway/payment/${id}/fetch`, shop.wallet, { optionId: option?.id, data: "" });
    expect([fetched.status, fetched.body]).toEqual([200, { actions: option?.actions }]);
  });

  test("the options of a payment that is not waiting are refused with its status", async () => {
    const expired = await makePayment(api, shop);
    await movePayment(api, expired, "requires_action", "expired");
    expect(await ask(expired)).toMatchObject({ status: 410, body: { code: "payment_expired" } });
    const paying = await makePayment(api, shop);
    await movePayment(api, paying, "requires_action", "processing");
    expect(await ask(paying)).toMatchObject({ status: 400, body: { code: "invalid_state" } });
  });
});
