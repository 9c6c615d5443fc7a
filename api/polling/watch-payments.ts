import {
  findEventBefore,
  findMovesAfter,
  findOwnedStatus,
  listOwnedStatuses,
} from "../../payments/lifecycle/read-payment.ts";
import type { PaymentDeps } from "../../payments/payment-deps.ts";
import { type PaymentChangeSubscription, subscribeToPaymentChanges } from "../../queues/payment-changes.ts";
import { followMoves } from "./follow-moves.ts";
import { createStatusCache, type StatusCache } from "./status-cache.ts";
import { createWaiters, type Waiters } from "./waiters.ts";

export type WatchDeps = Pick<
  PaymentDeps,
  "db" | "chains" | "assetUnits" | "metrics" | "log" | "now" | "publishPaymentChanges"
> & {
  subscriber: Parameters<typeof subscribeToPaymentChanges>[0];
  prefix: string;
};

/**
 * Opens what long polls and statuses are answered from. Messages make them fast; a statement each second finds what no
 * message has announced, so an outage of Redis delays a long poll by a second and loses nothing.
 */
export function watchPayments(deps: WatchDeps): {
  waiters: Waiters;
  statuses: StatusCache;
  subscription: PaymentChangeSubscription;
  close: () => void;
} {
  const { metrics, log, now, publishPaymentChanges } = deps;
  const subscription = subscribeToPaymentChanges(deps.subscriber, deps.prefix, (paymentId) => {
    statuses.announce(paymentId);
    waiters.wake(paymentId);
  });
  const follower = followMoves({
    findEventBefore: (ms) => findEventBefore(deps, ms),
    listMovesAfter: (after) => findMovesAfter(deps, after),
    onMove(paymentId) {
      statuses.change(paymentId);
      waiters.wake(paymentId);
    },
    onReset() {
      statuses.forget();
      waiters.wakeAll();
    },
    log,
  });
  const { catchUp, current } = subscription;
  const statuses = createStatusCache({
    findOwnedStatus: (paymentId) => findOwnedStatus(deps, paymentId),
    listOwnedStatuses: (paymentIds) => listOwnedStatuses(deps, paymentIds),
    publishPaymentChanges,
    isFollowed: follower.isRecent,
    catchUp,
    current,
    now,
  });
  const waiters = createWaiters({ listStatuses: statuses.readStatuses, metrics, log });
  const close = () => {
    follower.close();
    waiters.close();
  };
  return { waiters, statuses, subscription, close };
}
