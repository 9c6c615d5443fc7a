import type { FastifyReply } from "fastify";
import type { ErrorCode, Refusal } from "../../payments/error-codes.ts";

/**
 * HTTP status of every error code: 403, 404, 409, 410 and 500 follow the specification (part 7), the others their kind.
 */
export const statusOf = {
  invalid_params: 400,
  params_validation: 400,
  invalid_state: 400,
  header_not_ascii: 400,
  invalid_api_version: 400,
  unknown_api_version: 400,
  api_version_downgrade: 400,
  missing_merchant_id: 400,
  missing_client_id: 400,
  conflicting_auth_headers: 400,
  not_sandbox_api_key: 400,
  payment_not_succeeded: 400,
  missing_api_key: 401,
  missing_merchant_api_key: 401,
  missing_auth_headers: 401,
  missing_app_id: 401,
  invalid_api_key: 401,
  invalid_app_id: 401,
  unauthorized: 401,
  forbidden: 403,
  sanctioned_user: 403,
  payment_not_found: 404,
  refund_not_found: 404,
  merchant_not_found: 404,
  api_key_not_found: 404,
  app_id_not_found: 404,
  webhook_endpoint_not_found: 404,
  event_not_found: 404,
  partner_not_found: 404,
  customer_not_found: 404,
  wallet_not_found: 404,
  executor_not_found: 404,
  idempotency_conflict: 409,
  settlement_asset_conflict: 409,
  merchant_exists: 409,
  already_refunded: 409,
  quote_expired: 409,
  payment_expired: 410,
  rate_limited: 429,
  internal_error: 500,
  chain_unavailable: 503,
} as const satisfies Record<ErrorCode, number>;

/**
 * Sends an ErrorResponse (specification, 2.5). `status` is for errors of HTTP itself (404 of a path, 405, 413, 414, 415):
 * the specification has no code for them, so their code is `invalid_params`.
 */
export function sendRefusal(
  reply: FastifyReply,
  { code, message, retryAfterSeconds }: Pick<Refusal, "code" | "message" | "retryAfterSeconds">,
  status: number = statusOf[code],
): FastifyReply {
  reply.request.errorCode = code;
  // A challenge is required with 401 (RFC 9110, 11.6.1).
  if (status === 401) reply.header("www-authenticate", 'Bearer realm="payments"');
  if (retryAfterSeconds !== undefined) reply.header("retry-after", retryAfterSeconds);
  return reply.code(status).send({ code, message });
}
