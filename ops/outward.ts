import { lookup as dnsLookup } from "node:dns/promises";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { isPublicAddress } from "./addresses.ts";

/** A request to a server that a caller has named. */
export type OutwardRequest = {
  method: "GET" | "POST";
  url: string;
  headers?: Record<string, string>;
  body?: string;
  /** From now to the last byte, redirects included, milliseconds. */
  timeoutMs: number;
  /** Longest body that is read, bytes; the connection is cut at the first byte more. */
  maxBytes: number;
  /** Redirects followed, each checked like the first address. */
  redirects: number;
  /** True when the status is all that counts: the answer is there with its headers, and the body is thrown away. */
  statusOnly?: boolean;
  /**
   * True for a server that is asked often: its connection is kept for the next request. One that the server has closed
   * meanwhile costs a second try, so what is asked must be safe to repeat.
   */
  keepAlive?: boolean;
};

/** Why nothing came back: nobody answered, not in time, an address that is none of the public internet, or a misfit. */
export type OutwardFault = "unreachable" | "timeout" | "private_address" | "unfit";

/** What came back, or why nothing did, `reason` in words for the caller. `body` is complete. */
export type OutwardAnswer =
  | { ok: true; status: number; headers: IncomingMessage["headers"]; body: Buffer }
  | { ok: false; fault: OutwardFault; reason: string };

/** Asks a server that a caller has named, and no other: never one of a private network. Never throws. */
export type Outward = (request: OutwardRequest) => Promise<OutwardAnswer>;

export type OutwardOptions = {
  /** For development: any address, and plain HTTP. */
  allowPrivate: boolean;
  /** Certificates to trust instead of the usual ones; for tests. */
  ca?: string;
  /** Names to addresses; the system's resolver when unset. */
  resolve?: (name: string) => Promise<string[]>;
  /** Which addresses count as public; for tests, whose servers are all on this machine. */
  isPublic?: (address: string) => boolean;
};

/** A failure with words for the caller; anything else is told as "cannot be reached". */
class Unfit extends Error {
  readonly fault: OutwardFault;
  constructor(reason: string, fault: OutwardFault = "unfit") {
    super(reason);
    this.fault = fault;
  }
}

const ACCEPTED = "identity";

/** Connections that are kept: as many per server, and so long, milliseconds, as is of use while much happens. */
const KEPT = { keepAlive: true, maxFreeSockets: 64, timeout: 30_000 };
type Way = OutwardOptions & { agents: { http: HttpAgent; https: HttpsAgent } };

/** Opens nothing by itself. A request has a connection of its own, unless it says that it may be kept. */
export function createOutward(options: OutwardOptions): Outward {
  const way = { ...options, agents: { http: new HttpAgent(KEPT), https: new HttpsAgent(KEPT) } };
  return async (request) => {
    const signal = AbortSignal.timeout(request.timeoutMs);
    try {
      return await follow(way, request, signal);
    } catch (error) {
      if (signal.aborted)
        return { ok: false, fault: "timeout", reason: `took longer than ${request.timeoutMs / 1_000} s` };
      if (error instanceof Unfit) return { ok: false, fault: error.fault, reason: error.message };
      return { ok: false, fault: "unreachable", reason: "cannot be reached" };
    }
  };
}

/**
 * What is wrong with a URL that is to be asked later, as far as it can be told without asking anybody: the scheme, a
 * password in it, a private address written out. Undefined when nothing is.
 */
export function findUrlFault(options: OutwardOptions, text: string): string | undefined {
  try {
    const host = hostOf(readUrl(options, text));
    if (isIP(host)) checkAddresses(options, [host]);
    return undefined;
  } catch (error) {
    if (error instanceof Unfit) return error.message;
    throw error;
  }
}

async function follow(options: Way, request: OutwardRequest, signal: AbortSignal): Promise<OutwardAnswer> {
  let url = readUrl(options, request.url);
  for (let hops = 0; ; hops += 1) {
    const answer = await ask(options, request, url, signal);
    const { location } = answer.headers;
    if (answer.status < 300 || answer.status > 399 || location === undefined || request.redirects === 0)
      return { ok: true, ...answer };
    if (hops >= request.redirects) throw new Unfit(`redirects more than ${request.redirects} times`);
    url = readUrl(options, URL.parse(location, url.href)?.href ?? "");
  }
}

function readUrl({ allowPrivate }: OutwardOptions, text: string): URL {
  const url = URL.parse(text);
  if (!url) throw new Unfit("expected a URL");
  if (url.protocol !== "https:" && !(allowPrivate && url.protocol === "http:"))
    throw new Unfit("expected an https URL");
  if (url.username || url.password) throw new Unfit("holds a user name or password");
  return url;
}

type Answer = { status: number; headers: IncomingMessage["headers"]; body: Buffer };

/** The name is resolved once, here, and the connection goes to an address that was checked, now or when it was opened. */
async function ask(options: Way, asked: OutwardRequest, url: URL, signal: AbortSignal): Promise<Answer> {
  const address = await pickAddress(options, hostOf(url), signal);
  const lookup: LookupFunction = (_name, { all }, callback) => {
    const family = isIP(address);
    if (all) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
  const isSecure = url.protocol === "https:";
  const send = isSecure ? httpsRequest : httpRequest;
  const agent = asked.keepAlive ? (isSecure ? options.agents.https : options.agents.http) : false;
  const { method, body } = asked;
  const headers = {
    "accept-encoding": ACCEPTED,
    ...asked.headers,
    ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
  };
  const ca = options.ca === undefined ? {} : { ca: options.ca };
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sending = send(url, { method, headers, lookup, signal, agent, ...ca }, (response) => {
    const { statusCode: status = 0, headers } = response;
    if (asked.statusOnly) resolve({ status, headers, body: Buffer.alloc(0) });
    readBody(response, asked.maxBytes).then(
      (read) => resolve({ status, headers, body: read }),
      (error: unknown) => {
        sending.destroy();
        reject(error);
      },
    );
  });
  sending.on("error", (error) => {
    // The server had closed a connection that was kept: nothing is wrong but the moment.
    if (!sending.reusedSocket || signal.aborted) reject(error);
    else ask(options, { ...asked, keepAlive: false }, url, signal).then(resolve, reject);
  });
  sending.end(body);
  return promise;
}

async function pickAddress(options: OutwardOptions, host: string, signal: AbortSignal): Promise<string> {
  const addresses = isIP(host) ? [host] : await within(signal, (options.resolve ?? resolveName)(host));
  const [first] = addresses;
  if (first === undefined) throw new Unfit("the name has no address", "unreachable");
  checkAddresses(options, addresses);
  return first;
}

/** One private address among public ones is enough: which of them is used is not for the name's owner to choose. */
function checkAddresses(options: OutwardOptions, addresses: readonly string[]): void {
  if (!options.allowPrivate && !addresses.every(options.isPublic ?? isPublicAddress))
    throw new Unfit("is not on the public internet", "private_address");
}

/** An IPv6 address stands in brackets in a URL. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

async function resolveName(name: string): Promise<string[]> {
  return (await dnsLookup(name, { all: true })).map(({ address }) => address);
}

function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return Promise.race([work, promise]);
}

/** Reads to the end, or to the first byte too many. A body in another encoding could grow beyond any limit. */
async function readBody(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const encoding = response.headers["content-encoding"];
  if (encoding !== undefined && encoding !== ACCEPTED) throw new Unfit("is compressed, though that was not asked for");
  if (Number(response.headers["content-length"] ?? 0) > maxBytes) throw new Unfit(tooLarge(maxBytes));
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBytes) throw new Unfit(tooLarge(maxBytes));
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const tooLarge = (maxBytes: number) => `is larger than ${maxBytes} bytes`;
