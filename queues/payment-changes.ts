import type { Redis } from "ioredis";
import { withTimeout } from "../runtime/timeout.ts";
import type { RedisClient } from "./redis-connections.ts";

/**
 * Publishes the ids of payments that have changed. Callers publish after the commit. A lost message delays a long poll by one
 * second and has no other effect. Never throws.
 */
export type PublishPaymentChanges = (paymentIds: readonly string[]) => Promise<void>;

/** Returns the name of the channel. It is sharded: on a cluster, only the nodes of one slot carry it. */
export const paymentChanges = (prefix: string) => `${prefix}:payments:changed`;

/** Returns the publisher. `redis` is a connection that fails fast. */
export function createPaymentChangePublisher(redis: RedisClient, prefix: string): PublishPaymentChanges {
  return async (paymentIds) => {
    if (paymentIds.length === 0) return;
    await redis.spublish(paymentChanges(prefix), paymentIds.join(",")).catch(() => undefined);
  };
}

/** One connection of a subscription; another object after each reconnection. */
export type Session = { readonly isSession: true };

export type PaymentChangeSubscription = {
  /** Settles when the first subscription is made; never while Redis is down. */
  subscribed: Promise<unknown>;
  /**
   * Resolves when every message has been delivered that was published before the call. Returns the session, in which no
   * message has been lost since it began; undefined when there is none or Redis does not answer.
   */
  catchUp(): Promise<Session | undefined>;
  /** Returns the session. Messages of the last moment may be on their way; undefined when there is none. */
  current(): Session | undefined;
};

/** How long Redis may take to answer `catchUp`, milliseconds; afterwards it is not asked for `PAUSE_MS`. */
const ANSWER_MS = 100;
const PAUSE_MS = 1_000;
/** Delay before a refused subscription is tried on a new connection, milliseconds. */
const RETRY_MS = 500;

/**
 * Calls `onChange` with every published payment id. The connection, of `openSubscriber`, serves this subscription only from
 * then on.
 */
export function subscribeToPaymentChanges(
  redis: Redis,
  prefix: string,
  onChange: (paymentId: string) => void,
): PaymentChangeSubscription {
  const name = paymentChanges(prefix);
  const first = Promise.withResolvers<void>();
  let session: Session | undefined;
  let pausedUntil = 0;
  const reconnectSoon = () => {
    session = undefined;
    setTimeout(() => {
      if (redis.status === "ready" && session === undefined) redis.disconnect(true);
    }, RETRY_MS).unref();
  };
  const begin = () => {
    redis.ssubscribe(name).then(
      () => {
        session = { isSession: true };
        first.resolve();
      },
      (error: unknown) => {
        first.reject(error);
        reconnectSoon();
      },
    );
  };
  redis.on("smessage", (_channel, message) => {
    for (const id of message.split(",")) onChange(id);
  });
  redis.on("ready", begin);
  redis.on("close", () => {
    session = undefined;
  });
  // The node of a cluster has lost the channel's slot.
  redis.on("moved", reconnectSoon);
  if (redis.status === "ready") begin();

  const ask = async (): Promise<Session | undefined> => {
    if (session === undefined || redis.status !== "ready" || performance.now() < pausedUntil) return undefined;
    const asked = session;
    // The answer comes after the messages that were published before. On a cluster, only the master that has the channel
    // answers: the key is in the same slot.
    const isAnswered = await withTimeout(redis.exists(name), ANSWER_MS, "Redis").then(
      () => true,
      (error: unknown) => {
        if (/^(MOVED|CLUSTERDOWN)/.test(String((error as Error).message))) reconnectSoon();
        return false;
      },
    );
    if (!isAnswered) pausedUntil = performance.now() + PAUSE_MS;
    return isAnswered && asked === session ? asked : undefined;
  };
  let next: Promise<Session | undefined> | undefined;
  return {
    subscribed: first.promise,
    catchUp() {
      // Calls of one iteration of the event loop share a command.
      next ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
        next = undefined;
        return ask();
      });
      return next;
    },
    current: () => session,
  };
}
