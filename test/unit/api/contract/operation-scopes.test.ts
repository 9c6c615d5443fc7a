import { describe, expect, test } from "vitest";
import { describeApi } from "../../../../api/contract/openapi.ts";
import { operations } from "../../../../api/routes.ts";

/** The scope that each operation requires. A change of this list changes what existing keys may do. */
const expected = {
  createPayment: "payments:write",
  createMerchantPayment: "payments:write",
  cancelPayment: "payments:write",
  simulatePayment: "payments:write",
  getPayment: "payments:read",
  getPaymentStatus: "payments:read",
  getMerchantPaymentStatus: "payments:read",
  listMerchantPayments: "payments:read",
  listPayments: "payments:read",
  listBalances: "payments:read",
  listMerchantBalances: "payments:read",
  getStatement: "payments:read",
  getMerchantStatement: "payments:read",
  createRefund: "refunds",
  getRefund: "payments:read",
  listRefunds: "payments:read",
  withdrawRefund: "refunds",
  createMerchant: "merchants",
  listMerchants: "merchants",
  getMerchant: "merchants",
  updateMerchant: "merchants",
  deleteMerchant: "merchants",
  listSettlements: "settlements",
  createCryptoSettlements: "settlements",
  updateCryptoSettlement: "settlements",
  deleteCryptoSettlement: "settlements",
  listSettlementChanges: "settlements",
  approveSettlementChange: "settlements:approve",
  rejectSettlementChange: "settlements:approve",
  listApprovalKeys: "settlements",
  registerApprovalKey: "settlements:approve",
  revokeApprovalKey: "settlements:approve",
  createApiKey: "keys",
  listApiKeys: "keys",
  getApiKey: "keys",
  rotateApiKey: "keys",
  revokeApiKey: "keys",
  createAppId: "keys",
  listAppIds: "keys",
  revokeAppId: "keys",
  createWebhookEndpoint: "webhooks",
  listWebhookEndpoints: "webhooks",
  getWebhookEndpoint: "webhooks",
  updateWebhookEndpoint: "webhooks",
  deleteWebhookEndpoint: "webhooks",
  rotateWebhookSecret: "webhooks",
  testWebhookEndpoint: "webhooks",
  listWebhookDeliveries: "webhooks",
  getWebhookDelivery: "webhooks",
  replayWebhookEvent: "webhooks",
  replayWebhookEvents: "webhooks",
  listEvents: "webhooks",
  getEvent: "webhooks",
  listRequestLogs: "payments:read",
  gatewayGetPayment: "gateway",
  gatewayGetPaymentOptions: "gateway",
  gatewayFetchActions: "gateway",
  gatewayConfirmPayment: "gateway",
  gatewayGetPaymentStatus: "gateway",
  gatewayCancelPayment: "gateway",
};

test("every operation requires the scope of this list", () => {
  expect(Object.fromEntries(operations.map(({ name, scope }) => [name, scope]))).toEqual(expected);
});

describe("the OpenAPI document", () => {
  const { paths } = describeApi(operations, { publicUrl: "https://pay.example.test" });
  const described = Object.values(paths).flatMap((methods) => Object.values(methods));

  test.each(Object.entries(expected))("%s lists the scope %s of a key and the response 403", (name, scope) => {
    const operation = described.find(({ operationId }) => operationId === name);
    const wallet = scope === "gateway" ? [{ appId: [], clientId: [] }] : [];
    expect(operation?.["security"]).toEqual([{ apiKey: [scope] }, { bearer: [scope] }, ...wallet]);
    expect(operation?.responses["403"]).toMatchObject({ description: expect.stringContaining(`the scope ${scope})`) });
  });
});
