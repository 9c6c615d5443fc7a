import { randomId } from "../http/random-id.ts";
import type { Call } from "../http/send-once.ts";
import { type CallOptions, type CreateOptions, requireHeaderText, type Send } from "../http/transport.ts";

/** Options of a call that concerns one merchant. */
export type MerchantOptions = CallOptions & {
  /** The merchant, when it is not the client's own. */
  merchantId?: string;
};
export type MerchantCreateOptions = CreateOptions & MerchantOptions;

type ChangeMethod = "POST" | "PUT" | "PATCH" | "DELETE";

/** What the resources of a merchant's client share. */
export type MerchantCalls = {
  get<T>(path: string, query?: object, options?: MerchantOptions): Promise<T>;
  /** Reads a CSV file as a stream. */
  readCsv(path: string, query: object, options?: MerchantOptions): Promise<ReadableStream<Uint8Array>>;
  /** Sends a call that is never retried: a repetition could do something twice, or report an error after a success. */
  change<T>(method: ChangeMethod, path: string, body?: object, options?: MerchantOptions): Promise<T>;
  /** Sends a call that has one effect and one response, however often it is sent. */
  repeat<T>(path: string, options?: MerchantOptions): Promise<T>;
  /** Sends a call with an idempotency key. */
  create<T>(path: string, body: object, options?: MerchantCreateOptions): Promise<T>;
  /** The merchant of the client; undefined when it has none. */
  merchantId: string | undefined;
};

/** Returns the calls of a client, whose merchant is the given one unless a call names another. */
export function createMerchantCalls(send: Send, merchantId: string | undefined): MerchantCalls {
  const call = <T>(request: Call, { merchantId: chosen = merchantId, ...options }: MerchantOptions = {}) => {
    if (chosen !== undefined) requireHeaderText("merchantId", chosen);
    return send<T>({ ...request, headers: { "merchant-id": chosen, ...request.headers } }, options);
  };
  return {
    merchantId,
    get: (path, query, options) => call({ method: "GET", path, query: { ...query }, repeatable: true }, options),
    readCsv(path, query, options) {
      const headers = { accept: "text/csv, application/json" };
      return call({ method: "GET", path, query: { ...query }, headers, repeatable: true, streams: true }, options);
    },
    change: (method, path, body, options) => call({ method, path, body, repeatable: false }, options),
    repeat: (path, options) => call({ method: "POST", path, repeatable: true }, options),
    create(path, body, { idempotencyKey = randomId(), ...options } = {}) {
      requireKey(idempotencyKey);
      const headers = { "idempotency-key": idempotencyKey };
      return call({ method: "POST", path, body, headers, repeatable: true }, options);
    },
  };
}

/** Throws for what the service refuses as a key. It would not see blanks at the ends, so two keys could become one. */
function requireKey(key: string): void {
  if (typeof key !== "string" || !/^[ -~]{1,255}$/.test(key) || key.trim() !== key)
    throw new TypeError("idempotencyKey: expected 1 to 255 printable ASCII characters without blanks at the ends");
}
