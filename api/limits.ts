import type { FastifyReply } from "fastify";
import type { Redis } from "ioredis";
import ipaddr from "ipaddr.js";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { Metrics } from "../ops/metrics.ts";
import { withTimeout } from "../ops/timeout.ts";
import { type Refusal, refuse } from "../payments/errors.ts";

/** Whose requests are counted together. */
export type LimitedBy = "address" | "key" | "payment";

/** Counts a request; gives a refusal when there were too many, after putting the usual headers on the reply. */
export type Limits = { [By in LimitedBy]: (who: string, reply: FastifyReply) => Promise<Refusal | undefined> };

/** Requests a minute; 0 for no limit. */
export type LimitSettings = { perAddress: number; perKey: number; perPayment: number };

const WINDOW_SECONDS = 60;
/** A Redis that hangs must not hold a call: after this the process counts by itself, milliseconds. */
const REDIS_WITHIN_MS = 100;

/**
 * Counts requests per minute in Redis, so that all replicas count together: one command each. While Redis is away every
 * process counts for itself.
 */
export function createLimits(
  deps: { redis: Redis; prefix: string; metrics: Pick<Metrics, "rateLimited"> },
  { perAddress, perKey, perPayment }: LimitSettings,
): Limits {
  return {
    address: createLimit(deps, "address", perAddress),
    key: createLimit(deps, "key", perKey),
    payment: createLimit(deps, "payment", perPayment),
  };
}

function createLimit(
  { redis, prefix, metrics }: Parameters<typeof createLimits>[0],
  by: LimitedBy,
  points: number,
): Limits[LimitedBy] {
  if (points === 0) return async () => undefined;
  const alone = new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  const together = new RateLimiterRedis({
    storeClient: redis,
    points,
    duration: WINDOW_SECONDS,
    keyPrefix: `${prefix}:limit:${by}`,
    // Who is far over the limit costs no command any more.
    inMemoryBlockOnConsumed: points + 1,
    rejectIfRedisNotReady: true,
  });
  const count = async (who: string): Promise<RateLimiterRes> => {
    try {
      return await withTimeout(together.consume(who), REDIS_WITHIN_MS, "Redis");
    } catch (error) {
      if (error instanceof RateLimiterRes) throw error;
      return alone.consume(who);
    }
  };
  return async (who, reply) => {
    const [result, over] = await count(who).then(
      (counted): [RateLimiterRes, boolean] => [counted, false],
      (refused: RateLimiterRes): [RateLimiterRes, boolean] => [refused, true],
    );
    const seconds = Math.max(1, Math.ceil(result.msBeforeNext / 1_000));
    reply.headers({
      "ratelimit-limit": points,
      "ratelimit-remaining": Math.max(0, result.remainingPoints),
      "ratelimit-reset": seconds,
    });
    if (!over) return undefined;
    metrics.rateLimited.inc({ by });
    reply.header("retry-after", seconds);
    return refuse(
      "rate_limited",
      `more than ${points} requests a minute ${by === "payment" ? "from one address for one payment" : `from one ${by}`}; again in ${seconds} s`,
    );
  };
}

/**
 * What a payment's requests are counted by: the payment and the address together, so that a stranger who has seen the
 * payment cannot use up what its buyer may ask.
 */
export function paymentGroup(paymentId: string, ip: string): string {
  return `${paymentId} ${addressGroup(ip)}`;
}

/** What stands for an address: an IPv6 customer has a whole /64. */
export function addressGroup(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}
