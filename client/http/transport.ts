import { delayBeforeRetry } from "./retries.ts";
import { type Call, sendOnce } from "./send-once.ts";
import { requireTimeout } from "./time-limit.ts";
import { wait } from "./wait.ts";

/** Options of every call. */
export type CallOptions = {
  /** Ends the call, and its retries. The call then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Limit of each attempt, milliseconds, and of the wait for each part of a stream; that of the client when left out. */
  timeoutMs?: number;
};

/** Options of a call that creates something. */
export type CreateOptions = CallOptions & {
  /**
   * Two calls with one key do the work once: pass your own (such as an order's id) to repeat a call after a crash. When left
   * out, each call has a random one, which its retries share and its error names.
   */
  idempotencyKey?: string;
};

export type TransportSettings = {
  /** The address of the service, such as `https://pay.example.com`; it may have a path. */
  baseUrl: string;
  /** Limit of each attempt, milliseconds. Default: 30,000. */
  timeoutMs?: number;
  /** Retries of a call that may be repeated. Default: 3. */
  maxRetries?: number;
  /** Sends the requests; the platform's `fetch` when left out. */
  fetch?: typeof globalThis.fetch;
};

/** Sends a call with its retries and returns the body of the response. Rejects with a `PaymentServiceError`. */
export type Send = <T>(call: Call, options?: CallOptions) => Promise<T>;

/**
 * Returns the function that sends the calls of a client.
 * @param credentials the headers that authenticate each request
 */
export function createTransport(settings: TransportSettings, credentials: Readonly<Record<string, string>>): Send {
  const { timeoutMs = 30_000, maxRetries = 3 } = settings;
  requireTimeout(timeoutMs);
  const base = parseBaseUrl(settings.baseUrl);
  for (const [name, value] of Object.entries(credentials)) requireHeaderText(toOptionName(name), value);
  // The platform's fetch is looked up per request, because tools replace it; it also must not be called as a method.
  const fetch: typeof globalThis.fetch = settings.fetch ?? ((...request) => globalThis.fetch(...request));
  return async <T>(call: Call, options: CallOptions = {}): Promise<T> => {
    requireTimeout(options.timeoutMs);
    const headers = { ...credentials, ...call.headers };
    // Every attempt sends the same bytes, whatever the caller does with the object meanwhile.
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    for (let retries = 0; ; retries++) {
      // The service may hold the response of a poll.
      const limitMs = (options.timeoutMs ?? timeoutMs) + Number(call.query?.["maxPollMs"] ?? 0);
      const result = await sendOnce<T>(
        { fetch, base },
        { ...call, headers, body },
        { limitMs, signal: options.signal },
      );
      if (result.ok) return result.body;
      const delayMs = call.repeatable && retries < maxRetries ? delayBeforeRetry(result.error, retries) : undefined;
      if (delayMs === undefined) throw result.error;
      await wait(delayMs, options.signal);
    }
  };
}

/** Returns a path with its values encoded: path\`/v1/payments/${id}\`. Throws for a value that would change the path. */
export function path(texts: TemplateStringsArray, ...values: string[]): string {
  return String.raw(
    { raw: texts },
    ...values.map((value) => {
      if (typeof value !== "string" || value === "" || value === "." || value === "..")
        throw new TypeError("an id in the call is empty or no text");
      return encodeURIComponent(value);
    }),
  );
}

/** Returns the base URL without a slash at its end. */
function parseBaseUrl(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  // An empty query or fragment is none to the members of a URL, and still in its text.
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "" || /[?#]/.test(url.href))
    throw new TypeError("baseUrl: expected an http or https URL without user, query and fragment");
  return url.href.replace(/\/+$/, "");
}

/** Returns the option of the client that a header comes from: `apiKey` for `api-key`. */
const toOptionName = (header: string) => header.replace(/-(\w)/g, (_, first: string) => first.toUpperCase());

/** Throws, without the value, for what cannot be a header: `fetch` would name the value, a secret, in its error. */
export function requireHeaderText(name: string, value: string): void {
  if (typeof value !== "string" || !/^[!-~]{1,512}$/.test(value))
    throw new TypeError(`${name}: expected 1 to 512 visible ASCII characters`);
}
