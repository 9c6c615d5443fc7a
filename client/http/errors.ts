import type { ErrorCode } from "../api-types.ts";

/** What the errors of the client carry. */
export type ErrorDetails = {
  /**
   * The service's code, or `connection_failed` (no response arrived), `timeout`, `certificate_rejected`, `redirected` (the base
   * URL is another one), `invalid_response`, `wait_timeout`, or a code that a later version of the service has added.
   */
  code: ErrorCode | ClientErrorCode | (string & {});
  /** The HTTP status; undefined when there was no response. */
  status?: number | undefined;
  /** Identifies the request in the service's log. */
  requestId?: string | undefined;
  /** How long the service asks to wait before the request is repeated, milliseconds. */
  retryAfterMs?: number | undefined;
  /** The idempotency key of a creation. */
  idempotencyKey?: string | undefined;
  cause?: unknown;
};

/** Codes of errors that the client itself reports. */
type ClientErrorCode =
  | "connection_failed"
  | "timeout"
  | "certificate_rejected"
  | "redirected"
  | "invalid_response"
  | "wait_timeout";

/** A request that failed. No member holds an API key, and none holds the body of the request. */
export class PaymentServiceError extends Error {
  override readonly name: string = "PaymentServiceError";
  readonly code: string;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  /** The member or header that the service refuses, such as `amount.value`; undefined when the error concerns no single one. */
  readonly field: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** The key of a creation, also one that the client has made: a creation with the same key and body does the work once. */
  readonly idempotencyKey: string | undefined;

  constructor(message: string, { code, status, requestId, retryAfterMs, idempotencyKey, cause }: ErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.field = status === undefined ? undefined : fieldOf(message);
    this.retryAfterMs = retryAfterMs;
    this.idempotencyKey = idempotencyKey;
  }
}

/** Returns the first field that the service's message names: `amount.value: expected …`. */
const fieldOf = (message: string): string | undefined => /^([A-Za-z][\w.-]*): /.exec(message)?.[1];

/** 400, 413, 415: the request is wrong; `field` may say where. */
export class InvalidRequestError extends PaymentServiceError {
  override readonly name = "InvalidRequestError";
}
/** 401: the key or the app id is missing, unknown, revoked or expired. */
export class AuthenticationError extends PaymentServiceError {
  override readonly name = "AuthenticationError";
}
/** 403: the key lacks a scope, or the address or the buyer is not allowed. */
export class PermissionError extends PaymentServiceError {
  override readonly name = "PermissionError";
}
/** 404: the object does not exist for this key. Test and live data are separate. */
export class NotFoundError extends PaymentServiceError {
  override readonly name = "NotFoundError";
}
/** The present state of an object does not permit the request, or an idempotency key was used for another request. */
export class ConflictError extends PaymentServiceError {
  override readonly name: string = "ConflictError";
}
/** The option's quote has expired: request options again. */
export class QuoteExpiredError extends ConflictError {
  override readonly name = "QuoteExpiredError";
}
/** 410: the payment has expired: the merchant has to create another one. */
export class PaymentExpiredError extends PaymentServiceError {
  override readonly name = "PaymentExpiredError";
}
/** 429: too many requests; `retryAfterMs` says when to come back. */
export class RateLimitError extends PaymentServiceError {
  override readonly name = "RateLimitError";
}
/**
 * 5xx, or an answer that is not of the service: it failed, or another server answers in its place. What it did is unknown, unless
 * the call was a GET.
 */
export class ServiceError extends PaymentServiceError {
  override readonly name = "ServiceError";
}
/** No response arrived, or only a part of one. Whether the service has received the request is unknown. */
export class ConnectionError extends PaymentServiceError {
  override readonly name = "ConnectionError";
}
/** A payment was not final when the given time had passed. It may still succeed. */
export class WaitTimeoutError extends PaymentServiceError {
  override readonly name = "WaitTimeoutError";
}

/** Errors that their code tells, whatever the status is. */
const byCode: ReadonlyMap<string, typeof PaymentServiceError> = new Map([
  ["quote_expired", QuoteExpiredError],
  ["payment_expired", PaymentExpiredError],
  ["invalid_state", ConflictError],
  ["payment_not_succeeded", ConflictError],
]);

const byStatus: ReadonlyMap<number, typeof PaymentServiceError> = new Map([
  [401, AuthenticationError],
  [403, PermissionError],
  [404, NotFoundError],
  [409, ConflictError],
  [410, PaymentExpiredError],
  [429, RateLimitError],
]);

/** Returns the error for a response that is not a success. */
export function toError(message: string, details: ErrorDetails & { status: number }): PaymentServiceError {
  const { code, status } = details;
  const Kind =
    byCode.get(code) ?? byStatus.get(status) ?? (status >= 400 && status < 500 ? InvalidRequestError : ServiceError);
  return new Kind(message, details);
}
