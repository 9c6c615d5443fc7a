import { lookup as dnsLookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { setImmediate } from "node:timers/promises";
import { Agent, type Dispatcher, errors, request as sendRequest } from "undici";
import { createNameResolver } from "./name-resolver.ts";
import { isPublicAddress } from "./public-addresses.ts";
import { TimeoutError, withTimeout } from "./timeout.ts";

/** A request to a server that a caller of the API has named. */
export type SafeFetchRequest = {
  method: "GET" | "POST";
  url: string;
  headers?: Record<string, string>;
  body?: string;
  /** Time limit from now to the last byte, redirects included, milliseconds. */
  timeoutMs: number;
  /** Longest body that is read, bytes; a longer one closes the connection. */
  maxBytes: number;
  /** Number of redirects that are followed. Each target is checked like the first URL. */
  redirects: number;
  /**
   * Set when the status decides: the result comes with at most this many bytes of the body, of any encoding and length, as
   * far as they arrive within a quarter of a second after the headers. The rest is discarded.
   */
  beginning?: number;
  /**
   * True for a server that receives many requests: the connection is kept for the next one. A kept connection that fails
   * before the response is replaced and the request is sent a second time, so the request must be safe to repeat.
   */
  keepAlive?: boolean;
};

/**
 * Why there is no response: no connection, the time limit, an address that is not on the public internet, or a response
 * or URL that is not accepted.
 */
export type SafeFetchError = "unreachable" | "timeout" | "private_address" | "unusable";

type Response = { status: number; headers: Dispatcher.ResponseData["headers"]; body: Buffer };

/** A complete response, or why there is none; `reason` is a text for the caller of the API. */
export type SafeFetchResult = ({ ok: true } & Response) | { ok: false; error: SafeFetchError; reason: string };

/** Sends a request to a server on the public internet, and never to one of a private network. Never throws. */
export type SafeFetch = (request: SafeFetchRequest) => Promise<SafeFetchResult>;

export type SafeFetchOptions = {
  /** Allows any address, every name that the system knows, and plain HTTP; for development. */
  allowPrivate: boolean;
  /** Certificates to trust instead of the usual ones; for tests. */
  ca?: string;
  /** Resolves a name to addresses; the system when unset and private addresses are allowed, otherwise its name servers. */
  resolve?: (name: string) => Promise<string[]>;
  /** Addresses of name servers, instead of those of the system; for tests. */
  nameServers?: readonly string[];
  /** Decides which addresses are public; for tests, whose servers all run on this machine. */
  isPublic?: (address: string) => boolean;
};

/** An error whose message is for the caller of the API. Any other error is reported as "cannot be reached". */
class Unusable extends Error {
  readonly error: SafeFetchError;
  constructor(reason: string, error: SafeFetchError = "unusable") {
    super(reason);
    this.error = error;
  }
}

const ACCEPTED_ENCODING = "identity";
/** Ends a connection attempt whose request has already timed out, milliseconds. */
const CONNECT_MS = 30_000;
/** How long an unused connection is kept, milliseconds. */
const IDLE_MS = 30_000;

type Checks = Pick<SafeFetchOptions, "allowPrivate" | "isPublic">;
type Names = Checks & Required<Pick<SafeFetchOptions, "resolve">>;
type Client = Names & { agents: { once: Agent; kept: Agent } };

/** Returns a client. It opens no connection by itself. */
export function createSafeFetch(options: SafeFetchOptions): SafeFetch {
  const { ca, allowPrivate, nameServers } = options;
  const resolve = options.resolve ?? (allowPrivate ? lookupName : createNameResolver(nameServers));
  const names = { ...options, resolve };
  const connect = { lookup: lookupChecked(names), timeout: CONNECT_MS, ...(ca === undefined ? {} : { ca }) };
  const agents = {
    once: new Agent({ connect, allowH2: false, pipelining: 0 }),
    // A server may ask for less, not for more.
    kept: new Agent({ connect, allowH2: false, keepAliveTimeout: IDLE_MS, keepAliveMaxTimeout: IDLE_MS }),
  };
  return async (request) => {
    const { timeoutMs } = request;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      // undici notices the signal of a request only once its connection is made.
      const response = await withTimeout(follow({ ...names, agents }, request, signal), timeoutMs, "the request");
      return { ok: true, ...response };
    } catch (error) {
      if (signal.aborted || error instanceof TimeoutError)
        return { ok: false, error: "timeout", reason: `took longer than ${timeoutMs / 1_000} s` };
      if (error instanceof Unusable) return { ok: false, error: error.error, reason: error.message };
      return { ok: false, error: "unreachable", reason: "cannot be reached" };
    }
  };
}

/**
 * Returns what is wrong with a URL for later requests, or undefined. Checks only what needs no network: the scheme, a
 * password, a literal private address.
 */
export function validateUrl(options: SafeFetchOptions, text: string): string | undefined {
  try {
    const host = hostOf(readUrl(options, text));
    if (isIP(host)) checkAddresses(options, [host]);
    return undefined;
  } catch (error) {
    if (error instanceof Unusable) return error.message;
    throw error;
  }
}

async function follow(client: Client, request: SafeFetchRequest, signal: AbortSignal): Promise<Response> {
  let url = readUrl(client, request.url);
  for (let hops = 0; ; hops += 1) {
    const response = await send(client, request, url, signal);
    const [location] = [response.headers["location"]].flat();
    if (response.status < 300 || response.status > 399 || location === undefined || request.redirects === 0)
      return response;
    if (hops >= request.redirects) throw new Unusable(`redirects more than ${request.redirects} times`);
    url = readUrl(client, URL.parse(location, url.href)?.href ?? "");
  }
}

function readUrl({ allowPrivate }: Checks, text: string): URL {
  const url = URL.parse(text);
  if (!url) throw new Unusable("expected a URL");
  if (url.protocol !== "https:" && !(allowPrivate && url.protocol === "http:"))
    throw new Unusable("expected an https URL");
  if (url.username || url.password) throw new Unusable("holds a user name or password");
  return url;
}

async function send(client: Client, request: SafeFetchRequest, url: URL, signal: AbortSignal): Promise<Response> {
  const { method, body, headers } = request;
  const host = hostOf(url);
  // undici looks up neither a literal address nor a name that it has a kept connection to.
  if (isIP(host)) checkAddresses(client, [host]);
  else if (request.keepAlive) await resolveChecked(client, host);
  const sendBy = (dispatcher: Agent) =>
    sendRequest(url, {
      method,
      headers: { "accept-encoding": ACCEPTED_ENCODING, ...headers },
      ...(body === undefined ? {} : { body }),
      dispatcher,
      signal,
    });
  const { once, kept } = client.agents;
  const response = await (request.keepAlive
    ? sendBy(kept).catch((error: unknown) => {
        // The server may have closed the kept connection in the meantime.
        if (!isConnectionLost(error)) throw error;
        return sendBy(once);
      })
    : sendBy(once));
  const bytes = await readBody(response, request);
  // undici takes a connection back one turn of the event loop after the last byte.
  if (request.keepAlive) await setImmediate();
  return { status: response.statusCode, headers: response.headers, body: bytes };
}

function isConnectionLost(error: unknown): boolean {
  return (
    error instanceof errors.SocketError || (error instanceof Error && "code" in error && error.code === "ECONNRESET")
  );
}

/** Connects to addresses that were checked when the connection is made: the name is not resolved a second time. */
function lookupChecked(names: Names): LookupFunction {
  return (name, { all }, callback) => {
    resolveChecked(names, name).then(
      (addresses) => {
        // Node tries them in turn, so that a machine without IPv6, or without IPv4, reaches those of the other family.
        if (all) callback(null, addresses.map(withFamily));
        else callback(null, addresses[0], isIP(addresses[0]));
      },
      (error: Error) => callback(error, ""),
    );
  };
}

const withFamily = (address: string) => ({ address, family: isIP(address) });

/** Returns the addresses of a name; throws Unusable when there is none or one of them is private. */
async function resolveChecked(names: Names, name: string): Promise<[string, ...string[]]> {
  const [first, ...others] = await names.resolve(name);
  if (first === undefined) throw new Unusable("the name has no address", "unreachable");
  checkAddresses(names, [first, ...others]);
  return [first, ...others];
}

/** Throws Unusable when one address is private: the owner of a name must not choose which of its addresses is used. */
function checkAddresses({ allowPrivate, isPublic = isPublicAddress }: Checks, addresses: readonly string[]): void {
  if (!allowPrivate && !addresses.every(isPublic))
    throw new Unusable("is not on the public internet", "private_address");
}

/** Returns the host without the brackets of an IPv6 address. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

/** Returns the addresses of a name as the system knows them, also from its file of hosts. */
async function lookupName(name: string): Promise<string[]> {
  return (await dnsLookup(name, { all: true })).map(({ address }) => address);
}

/** Reads a body, up to the limit. Refuses a compressed one, because it could grow beyond any limit when it is opened. */
async function readBody(
  { headers, body }: Dispatcher.ResponseData,
  { maxBytes, beginning }: SafeFetchRequest,
): Promise<Buffer> {
  // A body that is destroyed before its end emits an error, which needs a listener.
  body.on("error", () => undefined);
  if (beginning !== undefined) return readBeginning(body, { bytes: beginning, maxBytes });
  try {
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== ACCEPTED_ENCODING)
      throw new Unusable("is compressed, which was not requested");
    if (Number(headers["content-length"] ?? 0) > maxBytes) throw new Unusable(tooLarge(maxBytes));
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of body) {
      size += part.length;
      if (size > maxBytes) throw new Unusable(tooLarge(maxBytes));
      parts.push(part);
    }
    return Buffer.concat(parts);
  } finally {
    body.destroy();
  }
}

/** How long a body of which only the beginning is needed may take, milliseconds. */
const BEGINNING_MS = 250;

/**
 * Returns the beginning of a body, and discards the rest, so that the connection can be used again. Ends a body that is too long or
 * too slow: its connection would stay open beside those of later requests.
 */
function readBeginning(
  body: Dispatcher.ResponseData["body"],
  { bytes, maxBytes }: { bytes: number; maxBytes: number },
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  const begun = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    begun.resolve();
    body.destroy();
  }, BEGINNING_MS);
  body.on("data", (part: Buffer) => {
    if (size < bytes) parts.push(part);
    size += part.length;
    if (size >= bytes) begun.resolve();
    if (size > maxBytes) body.destroy();
  });
  body.once("close", () => {
    clearTimeout(timer);
    begun.resolve();
  });
  return begun.promise.then(() => Buffer.concat(parts).subarray(0, bytes));
}

const tooLarge = (maxBytes: number) => `is larger than ${maxBytes} bytes`;
