import type { Redis } from "ioredis";

/** Says that payments have changed, after the commit. A lost message costs a waiter a second, nothing else. Never throws. */
export type Announce = (paymentIds: readonly string[]) => Promise<void>;

const channel = (prefix: string) => `${prefix}:payment-changed`;

/** Publishes over a connection that fails fast. */
export function createAnnounce(redis: Redis, prefix: string): Announce {
  return async (paymentIds) => {
    if (paymentIds.length === 0) return;
    await redis.publish(channel(prefix), paymentIds.join(",")).catch(() => undefined);
  };
}

/** Calls `onChange` with every announced payment id. The connection is used for nothing else from then on. */
export async function listen(redis: Redis, prefix: string, onChange: (paymentId: string) => void): Promise<void> {
  redis.on("message", (_channel, message) => {
    for (const id of message.split(",")) onChange(id);
  });
  await redis.subscribe(channel(prefix));
}
