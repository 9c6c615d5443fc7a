import {
  type DueAttempt,
  type DueRow,
  type DueTransfer,
  takeDue,
  takeDueChains,
  takeDueTransfers,
} from "../../db/due.ts";
import { type DueEndpoint, takeDueEndpoints } from "../../db/queries/webhook-endpoints.ts";
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
  endpoints: DueEndpoint[];
};

type Deps = Pick<PaymentDeps, "db" | "chains" | "now"> & CatchUpDeps;

const takers: { [K in keyof DueWork]: (deps: Deps) => Promise<DueWork[K]> } = {
  payments: ({ db, now }) => takeDue(db, { table: "payment", now: now(), limit: LIMIT }),
  attempts: ({ db, now }) => takeDue(db, { table: "attempt", now: now(), limit: LIMIT }),
  transfers: ({ db, chains, now }) => takeDueTransfers(db, { chains: [...chains.keys()], now: now(), limit: LIMIT }),
  settlements: (deps) => takePayouts(deps, "settlement"),
  refunds: (deps) => takePayouts(deps, "refund"),
  // A chain that has left the networks file keeps its cursor, but no worker can watch it.
  chains: ({ db, chains }) => takeDueChains(db, { chains: [...chains.keys()] }),
  endpoints: ({ db, now }) => {
    const at = now();
    return takeDueEndpoints(db, { now: at, retryAt: new Date(at.getTime() + ENDPOINT_RETRY_MS), limit: LIMIT });
  },
};

/**
 * Takes the rows of one kind whose due time has passed: after a lost job, a flushed Redis, or a crash between a commit and its
 * enqueueing. Each row is returned once and falls due again later, so the caller must enqueue jobs for all of them before it
 * takes another kind, which may fail.
 */
export function takeDueWork<K extends keyof DueWork>(deps: Deps, kind: K): Promise<DueWork[K]> {
  return takers[kind](deps);
}
