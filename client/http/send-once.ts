import { ConnectionError, type PaymentServiceError, toError } from "./errors.ts";
import { limitTime, type TimeLimit } from "./time-limit.ts";
import { watchStream } from "./watch-stream.ts";

/** The version of this package, as requests report it. */
const VERSION = "0.1.0";

type Result<T> = { ok: true; body: T } | { ok: false; error: PaymentServiceError };

/** A request, before it has credentials. */
export type Call = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the base URL, with encoded parts; see `path`. */
  path: string;
  query?: Readonly<Record<string, unknown>> | undefined;
  body?: object | undefined;
  headers?: Readonly<Record<string, string | undefined>> | undefined;
  /**
   * Whether the service does the work once, however often it gets the request: so of reads, of calls with an idempotency key,
   * and of the gateway's calls. Other calls are never retried.
   */
  repeatable: boolean;
  /** True for a response whose body is returned as a stream, as soon as it begins. */
  streams?: boolean;
};

/** A call as it is sent. */
type Request = Omit<Call, "body"> & { body: string | undefined };

/** Sends one request. Returns its error as a value, except when the caller's signal is aborted: then it rejects. */
export async function sendOnce<T>(
  { fetch, base }: { fetch: typeof globalThis.fetch; base: string },
  request: Request,
  { limitMs, signal }: { limitMs: number; signal: AbortSignal | undefined },
): Promise<Result<T>> {
  signal?.throwIfAborted();
  const { method, path, query, body, streams = false } = request;
  const url = `${base}${path}${toQueryText(query)}`;
  const headers = toHeaders(request);
  const limit = limitTime(limitMs, signal);
  const toFailure = (cause: unknown) => describeFailure(cause, request, { limit, limitMs });
  let isStreaming = false;
  try {
    const response = await fetch(url, {
      method,
      headers,
      // Followed, a redirect would carry the key to another server.
      redirect: "manual",
      credentials: "omit",
      cache: "no-store",
      signal: limit.signal,
      ...(body === undefined ? {} : { body }),
    });
    isStreaming = streams && response.ok;
    if (isStreaming && response.body)
      return { ok: true, body: watchStream(response.body, limit, { signal, toFailure }) as T };
    return readResponse<T>(request, response, await response.text());
  } catch (cause) {
    signal?.throwIfAborted();
    return { ok: false, error: toFailure(cause) };
  } finally {
    if (!isStreaming) limit.end();
  }
}

/** Returns the error for what `fetch` or the reading of a response has thrown. */
function describeFailure(
  cause: unknown,
  { method, path, headers }: Request,
  { limit, limitMs }: { limit: TimeLimit; limitMs: number },
): ConnectionError {
  const what = `${method} ${path}`;
  const idempotencyKey = headers?.["idempotency-key"];
  if (limit.signal.aborted)
    return new ConnectionError(`${what}: no response within ${limitMs} ms`, { code: "timeout", idempotencyKey });
  const [code, why] = isCertificateError(cause)
    ? (["certificate_rejected", "the certificate is refused"] as const)
    : (["connection_failed", "the connection failed"] as const);
  return new ConnectionError(`${what}: ${why}`, { code, idempotencyKey, cause });
}

/** Node names the error of a certificate in a cause; browsers do not tell it from a lost connection. */
function isCertificateError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isOne = "code" in error && /CERT|UNABLE_TO_VERIFY|HOSTNAME_MISMATCH/.test(String(error.code));
  return isOne || isCertificateError(error.cause);
}

function readResponse<T>(request: Request, response: Response, text: string): Result<T> {
  const { status, headers } = response;
  const body = parseObject(text);
  const requestId = headers.get("x-request-id") ?? undefined;
  if (response.ok && body) return { ok: true, body: body as T };
  const seconds = headers.get("retry-after");
  const retryAfterMs = seconds !== null && /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : undefined;
  const { code, message } = body ?? {};
  const idempotencyKey = request.headers?.["idempotency-key"];
  const details = { status, requestId, retryAfterMs, idempotencyKey };
  // Browsers hide the status of a redirect.
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400))
    return { ok: false, error: toError("the base URL redirects", { ...details, code: "redirected" }) };
  if (typeof code === "string" && typeof message === "string")
    return { ok: false, error: toError(message, { ...details, code }) };
  // A proxy in front of the service has answered.
  return {
    ok: false,
    error: toError(`HTTP ${status} without a readable body`, { ...details, code: "invalid_response" }),
  };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? { ...body } : undefined;
  } catch {
    return undefined;
  }
}

function toHeaders({ headers, body }: Request): Record<string, string> {
  const given = Object.entries(headers ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    accept: "application/json",
    "sdk-name": "payment-service-client",
    "sdk-version": VERSION,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...Object.fromEntries(given),
  };
}

/** Members of a query whose list is one parameter, separated by commas. */
const joined = ["network"];

/** Returns a query with its question mark. A list becomes one parameter for each entry; undefined members are left out. */
function toQueryText(query: Call["query"] = {}): string {
  const text = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]): [string, string][] => {
      const values = [value].flat().filter((one) => one !== undefined && one !== null);
      if (values.length === 0) return [];
      return joined.includes(name) ? [[name, values.join(",")]] : values.map((one) => [name, String(one)]);
    }),
  ).toString();
  return text === "" ? "" : `?${text}`;
}
