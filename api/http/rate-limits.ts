import type { FastifyReply } from "fastify";
import ipaddr from "ipaddr.js";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { type Refusal, refuse } from "../../payments/error-codes.ts";
import type { RedisClient } from "../../queues/redis-connections.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import { withTimeout } from "../../runtime/timeout.ts";

/** What a rate limit counts by. */
type LimitedBy = "address" | "key" | "payment";

/**
 * How many requests a request counts as (default: 1), and how many of them have been counted before. A request that has been
 * counted in full costs nothing.
 */
type Weight = { weight?: number; counted?: number };

/** Counts a request and sets the rate limit headers on the reply. Returns a refusal when there were too many requests. */
export type Limits = {
  [By in LimitedBy]: (key: string, reply: FastifyReply, weight?: Weight) => Promise<Refusal | undefined>;
};

/** Requests per minute; 0 means no limit. */
export type LimitSettings = { perAddress: number; perKey: number; perPayment: number };

const WINDOW_SECONDS = 60;
const WINDOW_MS = WINDOW_SECONDS * 1_000;
/** Timeout after which the process counts by itself, so that a hanging Redis does not delay requests, milliseconds. */
const REDIS_TIMEOUT_MS = 100;

/**
 * The share of a limit that a process counts in its own memory before it adds these requests to Redis. A caller who spreads
 * requests over several processes can exceed a limit by this share for each process.
 */
const LOCAL_SHARE = 0.02;

/** How many accounts a request for options may name for the price of one request. */
const ACCOUNTS_PER_REQUEST = 5;

/**
 * Callers that a process counts at most, for each limit. An attacker with many addresses could otherwise fill its memory. The
 * caller who was silent for longest is forgotten first, so only as many others between two requests of a caller reset a count.
 */
export const MOST_CALLERS = 20_000;

/**
 * Counts requests per minute of the clock. Each process counts by itself and adds its counts to Redis in steps, so that all
 * replicas share the counters and few requests cost a command. While Redis is down, each process counts its own requests.
 */
export function createLimits(
  deps: { redis: RedisClient; prefix: string; metrics: Pick<Metrics, "rateLimited">; now: () => Date },
  { perAddress, perKey, perPayment }: LimitSettings,
): Limits {
  return {
    address: createLimit(deps, "address", perAddress),
    key: createLimit(deps, "key", perKey),
    payment: createLimit(deps, "payment", perPayment),
  };
}

function createLimit(
  { redis, prefix, metrics, now }: Parameters<typeof createLimits>[0],
  by: LimitedBy,
  points: number,
): Limits[LimitedBy] {
  if (points === 0) return async () => undefined;
  const step = Math.max(1, Math.floor(points * LOCAL_SHARE));
  const local = new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  const noteCaller = createCallerList((key) => void local.delete(key));
  const shared = new RateLimiterRedis({
    storeClient: redis,
    points,
    duration: WINDOW_SECONDS,
    keyPrefix: `${prefix}:limit:${by}`,
    rejectIfRedisNotReady: true,
  });
  const count = async (name: string, weight: number): Promise<RateLimiterRes> => {
    noteCaller(name);
    const own = await local.consume(name, weight);
    const stepsBefore = Math.floor((own.consumedPoints - weight) / step);
    const steps = Math.floor(own.consumedPoints / step) - stepsBefore;
    if (steps === 0) return own;
    try {
      const all = await withTimeout(shared.consume(name, steps * step), REDIS_TIMEOUT_MS, "Redis");
      const byOthers = all.consumedPoints - own.consumedPoints;
      return byOthers > 0 ? await local.penalty(name, byOthers) : own;
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) return own;
      // A caller who is over the limit costs no further command.
      await local.block(name, WINDOW_SECONDS);
      throw error;
    }
  };
  return async (key, reply, { weight = 1, counted = 0 } = {}) => {
    // No request takes more than half of a minute's, so that its caller can also pay.
    const uncounted = Math.min(weight, Math.ceil(points / 2)) - counted;
    if (uncounted <= 0) return undefined;
    const ms = now().getTime();
    // The name of a count has its minute, in the process and in Redis: a count that begins with its first request would begin
    // later in Redis, and the process would charge the requests of the minute before to the next one.
    const [result, isOver] = await count(`${key} ${Math.floor(ms / WINDOW_MS)}`, uncounted).then(
      (counted): [RateLimiterRes, boolean] => [counted, false],
      (refused: RateLimiterRes): [RateLimiterRes, boolean] => [refused, true],
    );
    const seconds = Math.ceil((WINDOW_MS - (ms % WINDOW_MS)) / 1_000);
    reply.headers({
      "ratelimit-limit": points,
      "ratelimit-remaining": Math.max(0, result.remainingPoints),
      "ratelimit-reset": seconds,
    });
    if (!isOver) return undefined;
    metrics.rateLimited.inc({ by });
    reply.header("retry-after", seconds);
    return refuse(
      "rate_limited",
      `more than ${points} requests a minute ${by === "payment" ? "from one address for one payment" : `from one ${by}`}; retry in ${seconds} s`,
      seconds,
    );
  };
}

/** Returns a function that notes callers, and has the one forgotten who was silent for longest when there are too many. */
function createCallerList(forget: (key: string) => void): (key: string) => void {
  // A set lists its entries in the order in which they were added.
  const callers = new Set<string>();
  return (key) => {
    callers.delete(key);
    callers.add(key);
    if (callers.size <= MOST_CALLERS) return;
    const [oldest = key] = callers;
    callers.delete(oldest);
    forget(oldest);
  };
}

/**
 * Returns how many requests a request with this body counts as: a request for options makes as many quotes, and
 * reads as many balances, as it names accounts. A wallet has a few accounts, and a stranger can name those of others.
 */
function weighRequest(body: unknown): number {
  // Without a schema, because every request of a polling wallet comes here.
  if (typeof body !== "object" || body === null || !("accounts" in body) || !Array.isArray(body.accounts)) return 1;
  return Math.max(1, Math.ceil(body.accounts.length / ACCOUNTS_PER_REQUEST));
}

/**
 * Counts what a request weighs against the limit of its caller, which has counted it as one request before its body was read,
 * and then against the limit of its payment. The caller is the key, or the address of a request without one: otherwise a caller
 * could make heavy requests for many payments.
 */
export async function limitByPayment(
  limits: Limits,
  reply: FastifyReply,
  { paymentId, keyId }: { paymentId: string; keyId: string | null },
): Promise<Refusal | undefined> {
  const { ip, body } = reply.request;
  const weight = weighRequest(body);
  const rest = { weight, counted: 1 };
  const callerRefusal = await (keyId === null
    ? limits.address(addressLimitKey(ip), reply, rest)
    : limits.key(keyId, reply, rest));
  return callerRefusal ?? limits.payment(paymentLimitKey(paymentId, ip), reply, { weight });
}

/**
 * Returns the rate limit key of a payment's requests: the payment and the address together, so that a third party who has
 * the link cannot use up the buyer's limit.
 */
function paymentLimitKey(paymentId: string, ip: string): string {
  return `${paymentId} ${addressLimitKey(ip)}`;
}

/**
 * Returns the rate limit key of an address: an IPv4 address, or the /64 of an IPv6 address, which one customer owns.
 */
export function addressLimitKey(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  if (address instanceof ipaddr.IPv4) return address.toString();
  return `${address.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}
