import { createTransport, type TransportSettings } from "./http/transport.ts";
import { createApiKeys, createAppIds } from "./merchant/credentials.ts";
import { createEvents } from "./merchant/events.ts";
import { createMerchantCalls } from "./merchant/merchant-calls.ts";
import { createMerchants } from "./merchant/merchants.ts";
import { createPayments } from "./merchant/payments.ts";
import { createRefunds } from "./merchant/refunds.ts";
import { createReports } from "./merchant/reports.ts";
import { createRequestLogs } from "./merchant/request-logs.ts";
import { createApprovalKeys, createSettlements } from "./merchant/settlements.ts";
import { createWebhookDeliveries, createWebhookEndpoints } from "./merchant/webhook-endpoints.ts";
import { verifyWebhook } from "./webhooks/verify.ts";

export type PaymentClientSettings = TransportSettings & {
  /** A key of the account (`svc_…`, `svc_test_…`): it decides the mode. Keep it on a server. */
  apiKey: string;
  /** The merchant of calls that name none. */
  merchantId?: string;
};

/**
 * The client of a merchant's server. Calls reject with a `PaymentServiceError`. Calls that the service may get twice are
 * retried: reads, and those with an idempotency key.
 */
export class PaymentClient {
  readonly payments: ReturnType<typeof createPayments>;
  readonly refunds: ReturnType<typeof createRefunds>;
  readonly balances: ReturnType<typeof createReports>["balances"];
  readonly statements: ReturnType<typeof createReports>["statements"];
  readonly merchants: ReturnType<typeof createMerchants>;
  readonly settlements: ReturnType<typeof createSettlements>;
  readonly approvalKeys: ReturnType<typeof createApprovalKeys>;
  readonly apiKeys: ReturnType<typeof createApiKeys>;
  readonly appIds: ReturnType<typeof createAppIds>;
  readonly events: ReturnType<typeof createEvents>;
  readonly webhookEndpoints: ReturnType<typeof createWebhookEndpoints>;
  readonly webhookDeliveries: ReturnType<typeof createWebhookDeliveries>;
  readonly requestLogs: ReturnType<typeof createRequestLogs>;
  readonly webhooks = { verify: verifyWebhook };

  constructor({ apiKey, merchantId, ...settings }: PaymentClientSettings) {
    const calls = createMerchantCalls(createTransport(settings, { "api-key": apiKey }), merchantId);
    const { balances, statements } = createReports(calls);
    this.payments = createPayments(calls);
    this.refunds = createRefunds(calls);
    this.balances = balances;
    this.statements = statements;
    this.merchants = createMerchants(calls);
    this.settlements = createSettlements(calls);
    this.approvalKeys = createApprovalKeys(calls);
    this.apiKeys = createApiKeys(calls);
    this.appIds = createAppIds(calls);
    this.events = createEvents(calls);
    this.webhookEndpoints = createWebhookEndpoints(calls);
    this.webhookDeliveries = createWebhookDeliveries(calls);
    this.requestLogs = createRequestLogs(calls);
  }
}
