import { ConnectionError, PaymentServiceError } from "./errors.ts";

/** Delay before the first retry; it doubles with each (specification, client rules). Milliseconds. */
const FIRST_DELAY_MS = 100;
/** A call does not wait longer than this for its retry: its caller gets the error, which says how long to wait. */
const MAX_RETRY_AFTER_MS = 30_000;

/**
 * Returns how long to wait before a call sends its request again, milliseconds; undefined when the call ends with the error.
 * Requests are sent again after lost connections, 5xx, and 429 with `Retry-After`. At least that time passes; jitter spreads
 * the clients.
 * @param retries how many retries have been made
 */
export function delayBeforeRetry(error: PaymentServiceError, retries: number): number | undefined {
  const { status, retryAfterMs } = error;
  if (!isOutage(error) && !(status === 429 && retryAfterMs !== undefined)) return undefined;
  if (retryAfterMs !== undefined && retryAfterMs > MAX_RETRY_AFTER_MS) return undefined;
  const backoffMs = FIRST_DELAY_MS * 2 ** retries;
  return (retryAfterMs ?? 0) + backoffMs * (0.5 + Math.random() / 2);
}

/**
 * Returns true for an error that may pass, however long that takes: of the connection, of the service, of a limit, or of a
 * proxy that answers in place of the service. Callers that wait for an end try again, not before `retryAfterMs` has passed.
 */
export function isTransient(error: unknown): error is PaymentServiceError {
  if (!(error instanceof PaymentServiceError)) return false;
  return isOutage(error) || error.status === 429 || error.code === "invalid_response";
}

/** A certificate that is refused stays refused. */
const isOutage = (error: PaymentServiceError): boolean =>
  error instanceof ConnectionError
    ? error.code !== "certificate_rejected"
    : error.status !== undefined && error.status >= 500;
