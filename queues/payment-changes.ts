import type { Redis } from "ioredis";

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

/** Calls `onChange` with every published payment id. The connection serves this subscription only from then on. */
export async function subscribeToPaymentChanges(
  redis: Redis,
  prefix: string,
  onChange: (paymentId: string) => void,
): Promise<void> {
  redis.on("message", (_channel, message) => {
    for (const id of message.split(",")) onChange(id);
  });
  await redis.subscribe(channel(prefix));
}
