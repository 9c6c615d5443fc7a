import {
  type DueAttempt,
  type DueRow,
  type DueTransfer,
  takeDue,
  takeDueChains,
  takeDueTransfers,
} from "../../db/due.ts";
import { takeDueEndpoints } from "../../db/queries/webhook-endpoints.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type DuePayouts, takePayouts } from "../payouts/dispatch-payouts.ts";
import type { CatchUpDeps } from "../payouts/sign-payout.ts";

/** Rows of each table taken per sweep. The next sweep, a second later, takes more. */
const LIMIT = 500;
/** Time after which an endpoint's job is enqueued again if no worker has begun to deliver, milliseconds. */
const ENDPOINT_RETRY_MS = 5_000;

/** Due rows whose jobs have to be enqueued, by kind. */
export type DueWork = {
  payments: DueRow[];
  attempts: DueAttempt[];
  transfers: DueTransfer[];
  /** At most one job per merchant and asset. */
  settlements: DuePayouts[];
  refunds: DuePayouts[];
  /** Chains that no worker watches, and the block to wait for. */
  chains: { chain: string; block: number; retry: number }[];
  /** Endpoints with due events. `lost`: the previous job was lost, or its worker has died. */
  endpoints: (DueRow & { lost: boolean })[];
};

/**
 * Takes every row whose due time has passed: after a lost job, a flushed Redis, or a crash between a commit and its
 * enqueueing. Each row is returned once and falls due again later, so the caller must enqueue jobs for all of them.
 */
export async function takeDueWork(deps: Pick<PaymentDeps, "db" | "chains" | "now"> & CatchUpDeps): Promise<DueWork> {
  const { db } = deps;
  const chains = [...deps.chains.keys()];
  const now = deps.now();
  return {
    payments: await takeDue(db, { table: "payment", now, limit: LIMIT }),
    attempts: await takeDue(db, { table: "attempt", now, limit: LIMIT }),
    transfers: await takeDueTransfers(db, { chains, now, limit: LIMIT }),
    settlements: await takePayouts(deps, "settlement"),
    refunds: await takePayouts(deps, "refund"),
    // A chain that has left the networks file keeps its cursor, but no worker can watch it.
    chains: await takeDueChains(db, { chains }),
    endpoints: await takeDueEndpoints(db, { now, retryAt: new Date(now.getTime() + ENDPOINT_RETRY_MS), limit: LIMIT }),
  };
}
