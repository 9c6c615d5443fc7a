import { randomUUID } from "node:crypto";
import { privateKeyToAccount } from "viem/accounts";
import { newKey as newWallet } from "../../../../local/networks-document.ts";
import { setDestinationWait } from "../../../../payments/maintenance/operator-actions.ts";
import { makeApprovalKey, signStatement } from "../../../support/approval-key.ts";
import { plantRefundState } from "../../../support/plant-state.ts";
import { testActor } from "../../../support/test-actor.ts";
import { type Api, asset, destination, makeKey, makePayment, movePayment, type TestMerchant } from "../start-api.ts";
import { webhookCalls } from "./valid-webhook-calls.ts";

/** A request that succeeds; a test may send it or change it first. */
export type ValidCall = { method: string; path: string; headers: Record<string, string>; body?: unknown };

/** Returns how to call each operation of the contract so that it succeeds; every call uses its own objects. */
export async function makeValidCalls(
  api: Api,
  merchant: TestMerchant,
): Promise<Record<string, () => Promise<ValidCall>>> {
  const { headers, wallet } = merchant;
  const fresh = () => ({ ...headers, "idempotency-key": randomUUID() });
  const account = { "api-key": merchant.key };
  const buyer = privateKeyToAccount(newWallet().privateKey);
  const accounts = [`eip155:31337:${buyer.address}`];
  const ofMerchant = (path: string) => `/v1/merchants/${merchant.merchantId}${path}`;
  const onGateway = async (method: string, action: string, body?: unknown): Promise<ValidCall> => ({
    method,
    path: `/v1/gateway/payment/${await makePayment(api, merchant)}${action}`,
    headers: wallet,
    ...(body === undefined ? {} : { body }),
  });
  const withOption = async (action: string, toBody: (optionId: string, typedData: string) => Promise<object>) => {
    const call = await onGateway("POST", action);
    const asked = call.path.replace(action, "/options");
    const answer = await api.post(asked, wallet, { accounts });
    const [option] = answer.body["options"] as [{ id: string; actions: [{ data: { params: [string, string] } }] }];
    return { ...call, body: await toBody(option.id, option.actions[0].data.params[1]) };
  };
  const payment = { referenceId: "order-1", amount: { unit: "iso4217/USD", value: "500" } };
  const newShop = () => ({ merchantName: `Shop ${randomUUID()}`, merchantEmail: "shop@example.test" });
  const newMerchant = async () =>
    ((await api.post("/v1/merchants", fresh(), newShop())).body["merchant"] as { id: string }).id;
  const newSettlement = async () => {
    const id = await newMerchant();
    const path = `/v1/merchants/${id}/settlements/crypto`;
    const { body } = await api.post(path, fresh(), { settlements: [{ asset, destination }] });
    return `${path}/${(body["settlements"] as [{ id: string }])[0].id}`;
  };
  const newPaidPayment = async () => {
    const paymentId = await makePayment(api, merchant);
    await movePayment(api, paymentId, "requires_action", "processing");
    await movePayment(api, paymentId, "processing", "succeeded");
    return paymentId;
  };
  const newRefund = async () => {
    const { body } = await api.post("/v1/refunds", headers, { paymentId: await newPaidPayment() });
    return body["refundId"] as string;
  };
  const newKey = () => makeKey(api, { accountId: merchant.accountId, mode: "test", scopes: ["payments:read"] });
  const newApprovalKey = async (merchantId: string) => {
    const key = makeApprovalKey();
    const path = `/v1/merchants/${merchantId}/approval-keys`;
    await api.post(path, account, { publicKey: key.publicKey });
    return { key, path: `${path}/${key.publicKey}` };
  };
  const decideChange = async (decision: "approve" | "reject"): Promise<ValidCall> => {
    const path = await newSettlement();
    const merchantId = path.split("/")[3] ?? "";
    const { key } = await newApprovalKey(merchantId);
    const waitFor = (hours: number) =>
      setDestinationWait(api.deps, { actor: testActor, accountId: merchant.accountId, hours });
    await waitFor(72);
    const receiver = newWallet().address;
    const changed = await api.put(path, account, { destination: `eip155:31337:${receiver}` });
    await waitFor(0);
    const { changeId } = changed.body["pendingChange"] as { changeId: string };
    const changes = path.replace(/crypto\/.*/, "changes");
    const body = { statement: signStatement(key, { action: `${decision} destination`, merchantId, asset, receiver }) };
    return { method: "POST", path: `${changes}/${changeId}/${decision}`, headers: account, body };
  };
  const get =
    (path: string, to: Record<string, string> = headers) =>
    async (): Promise<ValidCall> => ({ method: "GET", path, headers: to });

  return {
    createPayment: async () => ({ method: "POST", path: "/v1/payments", headers: fresh(), body: payment }),
    createMerchantPayment: async () => ({ method: "POST", path: "/v1/merchant/payment", headers, body: payment }),
    getPaymentStatus: async () => ({
      ...(await get("")()),
      path: `/v1/payments/${await makePayment(api, merchant)}/status`,
    }),
    getMerchantPaymentStatus: async () => ({
      ...(await get("")()),
      path: `/v1/merchant/payment/${await makePayment(api, merchant)}/status?maxPollMs=1`,
    }),
    getPayment: async () => ({ ...(await get("")()), path: `/v1/payments/${await makePayment(api, merchant)}` }),
    cancelPayment: async () => ({
      method: "POST",
      path: `/v1/payments/${await makePayment(api, merchant)}/cancel`,
      headers,
      body: {},
    }),
    simulatePayment: async () => ({
      method: "POST",
      path: `/v1/payments/${await makePayment(api, merchant)}/simulate`,
      headers,
      body: { status: "succeeded" },
    }),
    createRefund: async () => ({
      method: "POST",
      path: "/v1/refunds",
      headers,
      body: { paymentId: await newPaidPayment() },
    }),
    getRefund: async () => ({ ...(await get("")()), path: `/v1/refunds/${await newRefund()}` }),
    listRefunds: async () => {
      await newRefund();
      return get(`/v1/refunds?merchantId=${merchant.merchantId}&status=succeeded&limit=1`, account)();
    },
    withdrawRefund: async () => {
      const refundId = await newRefund();
      await plantRefundState(api.db, refundId, "due");
      return { method: "POST", path: `/v1/refunds/${refundId}/withdraw`, headers, body: {} };
    },
    listMerchantPayments: get(
      "/v1/merchants/payments?limit=2&status=succeeded&status=expired&sortBy=amount&sortDir=asc",
    ),
    listPayments: get("/v1/payments?limit=2&startTs=2026-01-01T00:00:00Z&referenceId=order", account),
    listBalances: get("/v1/balances?limit=1", account),
    listMerchantBalances: get(ofMerchant("/balances"), account),
    getStatement: get("/v1/statement?from=2026-01-01&until=2026-12-31", account),
    getMerchantStatement: get(ofMerchant("/statement?from=2026-01-01&until=2026-12-31&limit=10"), account),
    createMerchant: async () => ({
      method: "POST",
      path: "/v1/merchants",
      headers: { ...account, "idempotency-key": randomUUID() },
      body: newShop(),
    }),
    listMerchants: get("/v1/merchants?limit=1&search=Shop&status=active", account),
    getMerchant: get(ofMerchant(""), account),
    updateMerchant: async () => ({
      method: "PATCH",
      path: ofMerchant(""),
      headers: account,
      body: { merchantName: "Shop" },
    }),
    deleteMerchant: async () => ({ method: "DELETE", path: `/v1/merchants/${await newMerchant()}`, headers: account }),
    listSettlements: get(ofMerchant("/settlements"), account),
    createCryptoSettlements: async () => ({
      method: "POST",
      path: `/v1/merchants/${await newMerchant()}/settlements/crypto`,
      headers: { ...account, "idempotency-key": randomUUID() },
      body: { settlements: [{ asset, destination }] },
    }),
    updateCryptoSettlement: async () => ({
      method: "PUT",
      path: await newSettlement(),
      headers: account,
      body: { destination },
    }),
    deleteCryptoSettlement: async () => ({ method: "DELETE", path: await newSettlement(), headers: account }),
    createApiKey: async () => ({
      method: "POST",
      path: "/v1/api-keys",
      headers: account,
      body: { scopes: ["payments:read"], merchantIds: [await newMerchant()], allowedCidrs: ["192.0.2.0/24"] },
    }),
    listApiKeys: get("/v1/api-keys?limit=1", account),
    getApiKey: async () => ({ ...(await get("", account)()), path: `/v1/api-keys/${(await newKey()).id}` }),
    rotateApiKey: async () => ({
      method: "POST",
      path: `/v1/api-keys/${(await newKey()).id}/rotate`,
      headers: account,
      body: {},
    }),
    revokeApiKey: async () => ({
      method: "POST",
      path: `/v1/api-keys/${(await newKey()).id}/revoke`,
      headers: account,
      body: { withCreated: true },
    }),
    createAppId: async () => ({ method: "POST", path: "/v1/app-ids", headers: account, body: {} }),
    listAppIds: get("/v1/app-ids?limit=1", account),
    revokeAppId: async () => {
      const { body } = await api.post("/v1/app-ids", account, {});
      const path = `/v1/app-ids/${(body["appId"] as { id: string }).id}/revoke`;
      return { method: "POST", path, headers: account, body: {} };
    },
    ...webhookCalls(api, merchant),
    listRequestLogs: get("/v1/request-logs?status=2xx&path=/v1/payments&limit=1", account),
    listSettlementChanges: get(ofMerchant("/settlements/changes?status=applied&limit=1"), account),
    approveSettlementChange: () => decideChange("approve"),
    rejectSettlementChange: () => decideChange("reject"),
    listApprovalKeys: get(ofMerchant("/approval-keys"), account),
    registerApprovalKey: async () => ({
      method: "POST",
      path: ofMerchant("/approval-keys"),
      headers: account,
      body: { publicKey: makeApprovalKey().publicKey },
    }),
    revokeApprovalKey: async () => ({
      method: "POST",
      path: `${(await newApprovalKey(merchant.merchantId)).path}/revoke`,
      headers: account,
      body: {},
    }),
    gatewayGetPayment: () => onGateway("GET", ""),
    gatewayGetPaymentOptions: () => onGateway("POST", "/options?includePaymentInfo=true", { accounts }),
    gatewayFetchActions: () => withOption("/fetch", async (optionId) => ({ optionId, data: "" })),
    gatewayConfirmPayment: () =>
      withOption("/confirm", async (optionId, typedData) => {
        const { types, ...rest } = JSON.parse(typedData);
        const { EIP712Domain: _, ...own } = types;
        const signature = await buyer.signTypedData({ ...rest, types: own });
        return { optionId, results: [{ type: "walletRpc", data: [signature] }] };
      }),
    gatewayGetPaymentStatus: () => onGateway("GET", "/status?maxPollMs=0"),
    gatewayCancelPayment: async () => {
      const call = await onGateway("POST", "/cancel", {});
      await api.post(call.path.replace("/cancel", "/options"), wallet, { accounts });
      return call;
    },
  };
}
