import { sql } from "kysely";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { moveRows } from "../../db/moves.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * Tolerance for block timestamps, which are whole seconds, milliseconds. On a chain that produces blocks on demand, a
 * block produced this long after a deadline may carry a timestamp before it.
 */
const BLOCK_SECOND_MS = 1_000;
/** Time after which a payment no longer waits for an asset that has left the networks file, milliseconds. */
const GONE_MS = 24 * 3_600_000;
/** Minimum and maximum delay before an undecided payment is checked again, milliseconds. */
const RECHECK_MS = 250;
const LONGEST_MS = 60_000;
/** Time after the next check at which the sweep enqueues it again, in case its job was lost, milliseconds. */
const SWEEP_AFTER_MS = 5_000;

/** `decided: false`: the deadline has passed, but it is not known yet whether the payment was paid in time. */
export type Expiry = { decided: true } | { decided: false; waitMs: number };

/**
 * Expires a payment whose deadline has passed without money. A payment that is being paid, or whose deadline lies
 * ahead, does not change; the guarded move decides the race with verification.
 *
 * A payment stays undecided while one of these holds:
 * - A confirm waits for verification.
 * - On a chain of one of its options, the watcher has not read past the deadline by the chain's clock.
 * - The watcher does not currently read the asset of one of its options.
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
  deps.metrics.paymentTransitions.inc({ mode: payment.mode, from: "requires_action", to: "expired" });
  await deps.publishPaymentChanges([paymentId]);
  return { decided: true };
}

/** SQL: a confirm or a movement from before the deadline may still be found. Test mode reads no chain. */
function isUndecided({ chains }: PaymentDeps, at: Date) {
  const open = [...chains.values()];
  const onDemand = open.filter(({ chain, network }) => getChainDriver(chain).makesBlocksOnDemand(network));
  const ids = (some: typeof open) => some.map(({ chain }) => chain);
  return sql`
    exists (select from attempt a where a.payment_id = payment.id and a.state = 'waiting')
    or (mode = 'live' and exists (
      select from payment_option o left join chain_cursor c on c.chain = o.chain
      where o.payment_id = payment.id and o.chain = any(${ids(open)})
        and (
          (o.asset = any(c.assets) or exists (select from asset_backfill u
            where u.chain = o.chain and u.asset = o.asset and u.since < ${new Date(at.getTime() - GONE_MS)}))
          and (c.chain_time > payment.expires_at or (o.chain = any(${ids(onDemand)})
            and c.reached_head_at > payment.expires_at + ${BLOCK_SECOND_MS}::float8 * interval '1 millisecond'))
        ) is not true))`;
}

/** Schedules the next check of an undecided payment. The delay grows with the time since the deadline. */
async function postpone(deps: PaymentDeps, paymentId: string, at: Date): Promise<Expiry> {
  const late = await deps.db
    .selectFrom("payment")
    .select("expires_at")
    .where("id", "=", paymentId)
    .where("state", "=", "requires_action")
    .where("expires_at", "<=", at)
    .executeTakeFirst();
  if (!late) return { decided: true };
  const waitMs = Math.min(LONGEST_MS, Math.max(RECHECK_MS, at.getTime() - late.expires_at.getTime()));
  await deps.db
    .updateTable("payment")
    .set({ due_at: new Date(at.getTime() + waitMs + SWEEP_AFTER_MS) })
    .where("id", "=", paymentId)
    .where("state", "=", "requires_action")
    .execute();
  return { decided: false, waitMs };
}
