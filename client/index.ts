export type * from "./api-types.ts";
export { GatewayClient, type GatewayClientSettings } from "./gateway-client.ts";
export {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  InvalidRequestError,
  NotFoundError,
  PaymentExpiredError,
  PaymentServiceError,
  PermissionError,
  QuoteExpiredError,
  RateLimitError,
  ServiceError,
  WaitTimeoutError,
} from "./http/errors.ts";
export type { Pages } from "./http/pages.ts";
export type { CallOptions, CreateOptions } from "./http/transport.ts";
export type { MerchantCreateOptions, MerchantOptions } from "./merchant/merchant-calls.ts";
export { PaymentClient, type PaymentClientSettings } from "./payment-client.ts";
export type { WaitOptions } from "./wait-until-final.ts";
export type { PayOptions } from "./wallet/pay.ts";
export {
  ConfirmError,
  ForeignLinkError,
  NoPaymentOptionError,
  PaymentDeclinedError,
  UnknownSendError,
  UnsafeActionError,
} from "./wallet/wallet-errors.ts";
export type { WalletRpc, WalletSigner } from "./wallet/wallet-signer.ts";
export type * from "./webhooks/events.ts";
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookHeaders,
  WebhookVerificationError,
} from "./webhooks/verify.ts";
