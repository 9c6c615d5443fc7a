/** Error codes of the specification (part 7) that concern resources which this service does not have. Nothing returns them. */
export const reservedCodes = [
  "partner_not_found",
  "customer_not_found",
  "wallet_not_found",
  "executor_not_found",
] as const;

/**
 * Every error code that a response may carry (specification, part 7, and `settlement_asset_conflict`; those of refunds, app ids,
 * webhooks and `chain_unavailable` are additions), and the reserved ones. api/http/http-errors.ts maps each code to an HTTP status.
 */
export const errorCodes = [
  "rate_limited",
  "invalid_params",
  "params_validation",
  "payment_not_found",
  "refund_not_found",
  "idempotency_conflict",
  "internal_error",
  "invalid_api_key",
  "unauthorized",
  "forbidden",
  "invalid_state",
  "payment_expired",
  "quote_expired",
  "missing_api_key",
  "missing_merchant_api_key",
  "missing_merchant_id",
  "header_not_ascii",
  "not_sandbox_api_key",
  "merchant_not_found",
  "api_key_not_found",
  "app_id_not_found",
  "webhook_endpoint_not_found",
  "event_not_found",
  "missing_app_id",
  "missing_client_id",
  "invalid_app_id",
  "conflicting_auth_headers",
  "missing_auth_headers",
  "invalid_api_version",
  "unknown_api_version",
  "api_version_downgrade",
  "sanctioned_user",
  "payment_not_succeeded",
  "already_refunded",
  "settlement_asset_conflict",
  "merchant_exists",
  "chain_unavailable",
  ...reservedCodes,
] as const;

export type ErrorCode = (typeof errorCodes)[number];
/** The codes of refusals that need not say when to try again. */
export type UntimedCode = Exclude<ErrorCode, "rate_limited">;

/** An expected failure as a value. `message` is for the caller and names the field, if one is invalid. */
export type Refusal = { ok: false; code: ErrorCode; message: string; retryAfterSeconds?: number };
export type Result<T> = { ok: true; value: T } | Refusal;

/** Returns a successful result. */
export function done<T>(value: T): Result<T> {
  return { ok: true, value };
}

/** Returns an expected failure. One with `rate_limited` says after how many seconds the caller should try again. */
export function refuse(code: UntimedCode, message: string): Refusal;
export function refuse(code: "rate_limited", message: string, retryAfterSeconds: number): Refusal;
export function refuse(code: ErrorCode, message: string, retryAfterSeconds?: number): Refusal {
  return { ok: false, code, message, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
}
