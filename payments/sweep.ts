import { type DueRow, takeDue, takeDueAttempts, takeDueChains, takeDueTransfers } from "../db/due.ts";
import type { Verification } from "../db/tables.ts";
import { takeDueEndpoints } from "../db/webhooks.ts";
import type { PaymentDeps } from "./deps.ts";

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
  attempts: (DueRow & { verification: Verification })[];
  transfers: (DueRow & { chain: string; isWallet: boolean })[];
  settlements: DueRow[];
  refunds: DueRow[];
  /** Chains that nobody watches, and the block to wait for. */
  chains: { chain: string; block: number; again: number }[];
  /** Endpoints that events are due for. `lost`: an earlier ring was not answered, or whoever answered has died. */
  endpoints: (DueRow & { lost: boolean })[];
};

/**
 * Finds every row whose due time has passed: after a lost job, a flushed Redis, a crash between a commit and its ring.
 * Each is handed out once and falls due again later, so the caller has to ring for all of them.
 */
export async function takeOwed(deps: Pick<PaymentDeps, "db" | "chains" | "now">): Promise<Owed> {
  const { db } = deps;
  const now = deps.now();
  return {
    payments: await takeDue(db, { table: "payment", now, limit: LIMIT, graceMs: EXPIRY_GRACE_MS }),
    attempts: await takeDueAttempts(db, { now, limit: LIMIT }),
    transfers: await takeDueTransfers(db, { now, limit: LIMIT }),
    settlements: await takeDue(db, { table: "settlement", now, limit: LIMIT }),
    refunds: await takeDue(db, { table: "refund", now, limit: LIMIT }),
    // A chain that has left the networks file keeps its cursor, and nobody can watch it.
    chains: await takeDueChains(db, { chains: [...deps.chains.keys()], now }),
    endpoints: await takeDueEndpoints(db, { now, againAt: new Date(now.getTime() + ENDPOINT_AGAIN_MS), limit: LIMIT }),
  };
}
