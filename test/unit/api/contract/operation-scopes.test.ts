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
  createRefund: "refunds",
  listPaymentRefunds: "refunds",
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
  getWebhookEndpoint: "webhooks",
  listWebhookDeliveries: "webhooks",
  replayWebhookEvent: "webhooks",
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
    const wallet = scope === "gateway" ? [{ appId: [] }] : [];
    expect(operation?.["security"]).toEqual([{ apiKey: [scope] }, { bearer: [scope] }, ...wallet]);
    expect(operation?.responses["403"]).toMatchObject({ description: expect.stringContaining(`the scope ${scope})`) });
  });
});
