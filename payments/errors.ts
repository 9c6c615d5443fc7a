/**
 * Every code an answer may carry (specification, part 7, and `settlement_asset_conflict`). The last five have no
 * producer yet and are reserved; `api_key_not_found` is the command line's. HTTP statuses are the ingress's business: api/errors.ts, total over this list.
 */
export const errorCodes = [
  "rate_limited",
  "invalid_params",
  "params_validation",
  "payment_not_found",
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
  "partner_not_found",
  "customer_not_found",
  "wallet_not_found",
  "executor_not_found",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** An expected failure, as a value. `message` is for the caller and names the field where there is one. */
export type Refusal = { ok: false; code: ErrorCode; message: string; retryAfterSeconds?: number };
export type Result<T> = { ok: true; value: T } | Refusal;

/** An answer that went well. */
export function done<T>(value: T): Result<T> {
  return { ok: true, value };
}

/** An expected failure. */
export function refuse(code: ErrorCode, message: string): Refusal {
  return { ok: false, code, message };
}
