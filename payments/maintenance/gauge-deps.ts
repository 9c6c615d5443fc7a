import type { TransferDeps } from "../../transfers/transfer-deps.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** What reading the gauges requires. `startedAt` replaces the time of an event that has never happened. */
export type GaugeDeps = Pick<PaymentDeps & TransferDeps, "db" | "chains" | "now" | "startedAt">;

/** Returns the seconds between a time and now, and 0 when there is no time or when it is in the future. */
export function measureAge(now: Date, at: Date | null): number {
  return at === null ? 0 : Math.max(0, now.getTime() - at.getTime()) / 1_000;
}
