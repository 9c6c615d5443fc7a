import { type DueAttempt, type DueRow, type DueTransfer, takeDue, takeDueChains, takeDueTransfers } from "../db/due.ts";
import { takeDueEndpoints } from "../db/webhooks.ts";
import type { PaymentDeps } from "./deps.ts";
import type { PayoutDeps } from "./payout.ts";
import { type DuePayouts, takePayouts } from "./payout-queue.ts";

/** Rows of a table taken in one statement; more are found by the next sweep, a second later. */
const LIMIT = 500;
/**
 * A payment's row falls due at its deadline, the very moment its delayed job is to run, so the job is given this much
 * time, milliseconds. The other rows fall due some seconds after their job was rung.
 */
const EXPIRY_GRACE_MS = 5_000;

/** An endpoint that nobody has begun to deliver to by then is rung for again, milliseconds. */
const ENDPOINT_AGAIN_MS = 5_000;

/** Rows whose job is owed, by what they are. */
export type Owed = {
  payments: DueRow[];
  attempts: DueAttempt[];
  transfers: DueTransfer[];
  /** Of each merchant and asset one job's worth. */
  settlements: DuePayouts[];
  refunds: DuePayouts[];
  /** Chains that nobody watches, and the block to wait for. */
  chains: { chain: string; block: number; again: number }[];
  /** Endpoints that events are due for. `lost`: an earlier ring was not answered, or whoever answered has died. */
  endpoints: (DueRow & { lost: boolean })[];
};

/**
 * Finds every row whose due time has passed: after a lost job, a flushed Redis, a crash between a commit and its ring.
 * Each is handed out once and falls due again later, so the caller has to ring for all of them.
 */
export async function takeOwed(deps: Pick<PaymentDeps, "db" | "chains" | "now"> & PayoutDeps): Promise<Owed> {
  const { db } = deps;
  const chains = [...deps.chains.keys()];
  const now = deps.now();
  return {
    payments: await takeDue(db, { table: "payment", now, limit: LIMIT, graceMs: EXPIRY_GRACE_MS }),
    attempts: await takeDue(db, { table: "attempt", now, limit: LIMIT }),
    transfers: await takeDueTransfers(db, { chains, now, limit: LIMIT }),
    settlements: await takePayouts(deps, "settlement"),
    refunds: await takePayouts(deps, "refund"),
    // A chain that has left the networks file keeps its cursor, and nobody can watch it.
    chains: await takeDueChains(db, { chains }),
    endpoints: await takeDueEndpoints(db, { now, againAt: new Date(now.getTime() + ENDPOINT_AGAIN_MS), limit: LIMIT }),
  };
}
