import {
  advanceFanouts,
  deleteFanouts,
  insertSettledEvents,
  listFanoutPayments,
  lockFanouts,
} from "../../db/queries/webhook-fanouts.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Events written in one transaction, shared among its settlements. Each gets one at least. */
const PART = 500;
/** Settlements handled in one transaction. Most have a single payment. */
const SETTLEMENTS = 500;

/**
 * Writes the next `payment.settled` events of paid settlements, about 500 in one transaction. The transaction that
 * confirms a payout only records that events are pending, so its cost does not grow with the number of payments. Each
 * part advances the settlements' cursors in the transaction that writes the events, so that a crash or a concurrent
 * caller neither duplicates nor skips an event. The settlements have equal shares of a part: those of other merchants do
 * not wait for one with thousands of payments. Returns the number of payments and settlements finished; 0 when none is left.
 */
export async function writeSettledEvents({ db: pool }: Pick<PaymentDeps, "db">): Promise<number> {
  return pool.transaction().execute(async (db) => {
    const fanouts = await lockFanouts(db, SETTLEMENTS);
    if (fanouts.length === 0) return 0;
    const share = Math.ceil(PART / fanouts.length);
    // One payment more than the share, which shows whether more are left.
    const found = await listFanoutPayments(db, { fanouts, limit: share + 1 });
    const paymentsOf = Map.groupBy(found, ({ settlement_id }) => settlement_id);
    const parts = fanouts.map(({ settlement_id: settlementId, at }) => {
      const next = paymentsOf.get(settlementId) ?? [];
      return { settlementId, at, ids: next.slice(0, share).map(({ id }) => id), isComplete: next.length <= share };
    });
    const events = parts.flatMap(({ ids, at }) => ids.map((paymentId) => ({ paymentId, at })));
    await insertSettledEvents(db, events);
    const complete = parts.filter(({ isComplete }) => isComplete).map(({ settlementId }) => settlementId);
    await deleteFanouts(db, complete);
    const unfinished = parts.filter(({ isComplete }) => !isComplete);
    await advanceFanouts(
      db,
      unfinished.map(({ settlementId, ids }) => ({ settlementId, afterPayment: ids.at(-1) ?? "" })),
    );
    return events.length + complete.length;
  });
}

/** Parts that one call of `writeSettledEventParts` writes. */
const PARTS = 4;

/** Writes pending `payment.settled` events for as long as a sweep may take. The next sweep continues. */
export async function writeSettledEventParts(deps: Pick<PaymentDeps, "db">): Promise<void> {
  for (let part = 0; part < PARTS; part += 1) if ((await writeSettledEvents(deps)) === 0) return;
}
