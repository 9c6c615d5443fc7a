import type { ErrorCode } from "../../payments/error-codes.ts";

/** An example of the message of each error code that a response may carry. */
const messages: Record<ErrorCode, string> = {
  rate_limited: "more than 600 requests a minute from one key; retry in 12 s",
  invalid_params: "accounts: expected at least one account",
  params_validation: "amount.value: expected 1 to 78 digits, without a leading zero and not zero",
  payment_not_found: "no such payment",
  refund_not_found: "no such refund",
  idempotency_conflict: "Idempotency-Key: was used for another request",
  chain_unavailable: "the chain cannot be read at the moment; retry in 5 s",
  internal_error: "an internal error occurred; retry later",
  invalid_api_key: "the API key is not known",
  unauthorized: "Authorization: expected Bearer and an API key",
  forbidden: "the API key lacks the scope refunds",
  invalid_state: "the payment is expired",
  payment_expired: "the payment has expired",
  quote_expired: "the option's quote has expired; request the options again",
  missing_api_key: "Api-Key: the header is missing",
  missing_merchant_api_key: "an App-Id is for wallets; this call requires a merchant's Api-Key",
  missing_merchant_id: "Merchant-Id: the header is missing",
  header_not_ascii: "api-key: the header holds characters that are not ASCII",
  not_sandbox_api_key: "only test payments can be simulated",
  merchant_not_found: "no such merchant",
  api_key_not_found: "no such key",
  app_id_not_found: "no such app id",
  webhook_endpoint_not_found: "no such webhook endpoint",
  event_not_found: "no such event",
  missing_app_id: "App-Id: the header is missing beside Client-Id",
  missing_client_id: "Client-Id: the header is missing beside App-Id",
  invalid_app_id: "App-Id: is not known or has been revoked",
  conflicting_auth_headers: "Api-Key and Authorization hold different keys",
  missing_auth_headers: "expected Api-Key, or App-Id and Client-Id",
  invalid_api_version: "Svc-Version: expected a date such as 2026-02-18, optionally with .preview",
  unknown_api_version: "Svc-Version: expected one of 2026-02-18, 2026-02-19.preview, 2026-02-19",
  api_version_downgrade: "Svc-Version: the account is pinned to 2026-02-19, and earlier versions are not allowed",
  sanctioned_user: "the account is not served",
  payment_not_succeeded: "the payment is processing",
  already_refunded: "the payment has been refunded before",
  settlement_asset_conflict: "settlements.0.asset: has a destination already",
  merchant_exists: "a merchant with this name and e-mail address exists",
  partner_not_found: "no such partner",
  customer_not_found: "no such customer",
  wallet_not_found: "no such wallet",
  executor_not_found: "no such executor",
};

/** Returns the examples of an error response, by error code. */
export function errorExamples(codes: readonly ErrorCode[]): Record<string, { summary: string; value: object }> {
  return Object.fromEntries(
    codes.toSorted().map((code) => [code, { summary: messages[code], value: { code, message: messages[code] } }]),
  );
}
