import type { PayoutWithNonce } from "./payout-nonce.ts";
import type { PayoutResult } from "./protocol.ts";

/** Payouts that are remembered at most. More are refused all the same, and those that are remembered page. */
const MOST = 10_000;
/** How long a payout is remembered that is not asked for again, milliseconds: longer than a worker waits before it does. */
const FORGOTTEN_MS = 3_600_000;

/** `amount` is the highest that was refused. */
type Short = { amount: bigint; firstAt: Date; lastAt: Date };

/** The payouts that the signer has refused as `funds_short` and has not signed since. */
export type ShortPayouts = {
  /** Notes the answer to a request for a payout. */
  note(payout: Pick<PayoutWithNonce, "nonce" | "amount">, result: PayoutResult): void;
  /** Returns the seconds since the oldest of them was first refused; 0 when there is none. */
  oldestSeconds(): number;
};

/**
 * Remembers, until the process ends, which payouts the verified deposits did not cover. An ordinary refund is signed moments
 * later, when the merchant's other deposits are claimed. Depends on nothing that the database or a worker says about a refusal.
 */
export function createShortPayouts(now: () => Date): ShortPayouts {
  const open = new Map<string, Short>();
  return {
    note({ nonce, amount }, result) {
      const found = open.get(nonce);
      if (result.ok) {
        // A lower amount that is signed explains nothing about the higher one that was asked for.
        if (found && amount >= found.amount) open.delete(nonce);
        return;
      }
      if (result.reason !== "funds_short") return;
      const at = now();
      if (found) open.set(nonce, { ...found, amount: amount > found.amount ? amount : found.amount, lastAt: at });
      // The oldest are kept: many new refusals must not displace those that are about to page.
      else if (open.size < MOST) open.set(nonce, { amount, firstAt: at, lastAt: at });
    },
    oldestSeconds() {
      const at = now().getTime();
      for (const [nonce, { lastAt }] of open) if (at - lastAt.getTime() > FORGOTTEN_MS) open.delete(nonce);
      const first = Math.min(at, ...open.values().map(({ firstAt }) => firstAt.getTime()));
      return (at - first) / 1_000;
    },
  };
}
