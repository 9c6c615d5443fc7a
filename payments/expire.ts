import { sql } from "kysely";
import { moveRows } from "../db/moves.ts";
import type { PaymentDeps } from "./deps.ts";

/**
 * Blocks name whole seconds: where blocks come on demand, one that is made so long after a deadline may still say that it
 * was before it, milliseconds.
 */
const BLOCK_SECOND_MS = 1_000;
/** An asset that the networks file has not had for so long is gone: its payments wait for it no longer, milliseconds. */
const GONE_MS = 24 * 3_600_000;
/** Shortest and longest wait until an undecided payment is checked again, milliseconds; the longest is the sweep's own. */
const CHECK_AGAIN_MS = 250;
const LONGEST_MS = 60_000;
/** So long after the next check the sweep takes over, should that check have been lost, milliseconds. */
const SWEEP_AFTER_MS = 5_000;

/** `waitMs`: the deadline has passed, and whether the payment was paid before it is not known yet. */
export type Expiry = { decided: true } | { decided: false; waitMs: number };

/**
 * Ends a payment whose deadline has passed without payment. A payment that is being paid, or not due yet, stays as it is:
 * the guarded move settles the race with verification. So does one of which it is not known yet whether it was paid in
 * time: while a confirm waits for its verification, and while the watcher of a chain on which the payment has an option
 * has not read past the deadline in the chain's own time, or does not read the option's asset at present.
 */
export async function expirePayment(deps: PaymentDeps, paymentId: string): Promise<Expiry> {
  const at = deps.now();
  const moved = await deps.db.transaction().execute((db) =>
    moveRows(db, "payment", {
      ids: [paymentId],
      from: "requires_action",
      to: "expired",
      at,
      where: sql`expires_at <= ${at} and not (${isUndecided(deps, at)})`,
      set: { due_at: null },
    }),
  );
  if (moved.length === 0) return postpone(deps, paymentId, at);
  const payment = await deps.db
    .selectFrom("payment")
    .select("mode")
    .where("id", "=", paymentId)
    .executeTakeFirstOrThrow();
  deps.metrics.paymentMoves.inc({ mode: payment.mode, from: "requires_action", to: "expired" });
  await deps.announce([paymentId]);
  return { decided: true };
}

/** SQL: money or a confirm of before the deadline may still be found. Test mode meets no chain. */
function isUndecided({ chains }: PaymentDeps, at: Date) {
  const open = [...chains.values()];
  const onDemand = open.filter(({ family, network }) => family === "evm" && network.maxHeadAgeMs === null);
  const ids = (some: typeof open) => some.map(({ chain }) => chain);
  return sql`
    exists (select from attempt a where a.payment_id = payment.id and a.state = 'waiting')
    or (mode = 'live' and exists (
      select from payment_option o left join chain_cursor c on c.chain = o.chain
      where o.payment_id = payment.id and o.chain = any(${ids(open)})
        and (
          (o.asset = any(c.assets) or exists (select from unread_asset u
            where u.chain = o.chain and u.asset = o.asset and u.since < ${new Date(at.getTime() - GONE_MS)}))
          and (c.chain_time > payment.expires_at or (o.chain = any(${ids(onDemand)})
            and c.reached_head_at > payment.expires_at + ${BLOCK_SECOND_MS}::float8 * interval '1 millisecond'))
        ) is not true))`;
}

/** The longer a payment has been undecided, the longer until it is checked again. */
async function postpone(deps: PaymentDeps, paymentId: string, at: Date): Promise<Expiry> {
  const late = await deps.db
    .selectFrom("payment")
    .select("expires_at")
    .where("id", "=", paymentId)
    .where("state", "=", "requires_action")
    .where("expires_at", "<=", at)
    .executeTakeFirst();
  if (!late) return { decided: true };
  const waitMs = Math.min(LONGEST_MS, Math.max(CHECK_AGAIN_MS, at.getTime() - late.expires_at.getTime()));
  await deps.db
    .updateTable("payment")
    .set({ due_at: new Date(at.getTime() + waitMs + SWEEP_AFTER_MS) })
    .where("id", "=", paymentId)
    .where("state", "=", "requires_action")
    .execute();
  return { decided: false, waitMs };
}
