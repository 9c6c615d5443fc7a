import type { Redis } from "ioredis";
import { withTimeout } from "../runtime/timeout.ts";

/**
 * Publishes the ids of payments that have changed. Callers publish after the commit. A lost message delays a long poll by one
 * second and has no other effect. Never throws.
 */
export type PublishPaymentChanges = (paymentIds: readonly string[]) => Promise<void>;

const channel = (prefix: string) => `${prefix}:payment-changed`;

/** Returns the publisher. `redis` is a connection that fails fast. */
export function createPaymentChangePublisher(redis: Redis, prefix: string): PublishPaymentChanges {
  return async (paymentIds) => {
    if (paymentIds.length === 0) return;
    await redis.publish(channel(prefix), paymentIds.join(",")).catch(() => undefined);
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
  /** Returns true while the session lasts. */
  isCurrent(session: Session): boolean;
};

/** How long Redis may take to answer `catchUp`, milliseconds; afterwards it is not asked for `PAUSE_MS`. */
const ANSWER_MS = 100;
const PAUSE_MS = 1_000;

/** Calls `onChange` with every published payment id. The connection serves this subscription only from then on. */
export function subscribeToPaymentChanges(
  redis: Redis,
  prefix: string,
  onChange: (paymentId: string) => void,
): PaymentChangeSubscription {
  const name = channel(prefix);
  const newSession = (): Session => ({ isSession: true });
  let session = newSession();
  let pausedUntil = 0;
  redis.on("message", (_channel, message) => {
    for (const id of message.split(",")) onChange(id);
  });
  redis.on("close", () => {
    session = newSession();
  });

  const ask = async (): Promise<Session | undefined> => {
    if (redis.status !== "ready" || performance.now() < pausedUntil) return undefined;
    const asked = session;
    // To subscribe again changes nothing. The answer shows that this connection is subscribed, and comes after the messages
    // that were published before.
    const isAnswered = await withTimeout(redis.subscribe(name), ANSWER_MS, "Redis").then(
      () => true,
      () => false,
    );
    if (!isAnswered) pausedUntil = performance.now() + PAUSE_MS;
    return isAnswered && asked === session ? asked : undefined;
  };
  let next: Promise<Session | undefined> | undefined;
  return {
    subscribed: redis.subscribe(name),
    catchUp() {
      // Calls of one iteration of the event loop share a command.
      next ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
        next = undefined;
        return ask();
      });
      return next;
    },
    isCurrent: (one) => one === session,
  };
}
