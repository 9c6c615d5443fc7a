import {
  advanceFanout,
  deleteFanouts,
  insertSettledEvents,
  listFanoutPayments,
  lockFanouts,
} from "../../db/queries/webhook-fanouts.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Maximum number of events written in one transaction. */
const PART = 500;
/** Settlements handled in one transaction. Most have a single payment. */
const SETTLEMENTS = 500;

/**
 * Writes the next `payment.settled` events of paid settlements, at most 500 in one transaction. The transaction that
 * confirms a payout only records that events are pending, so its cost does not grow with the number of payments. Each
 * part advances the settlement's cursor in the transaction that writes the events, so that a crash or a concurrent
 * caller neither duplicates nor skips an event. Returns the number of payments and settlements finished; 0 when none is
 * left.
 */
export async function writeSettledEvents({ db: pool }: Pick<PaymentDeps, "db">): Promise<number> {
  return pool.transaction().execute(async (db) => {
    const fanouts = await lockFanouts(db, SETTLEMENTS);
    if (fanouts.length === 0) return 0;
    const part = await listFanoutPayments(db, { fanouts, limit: PART });
    const paidAt = new Map(fanouts.map(({ settlement_id, at }) => [settlement_id, at]));
    const events = part.flatMap(({ id, settlement_id }) => {
      const at = paidAt.get(settlement_id);
      return at === undefined ? [] : [{ paymentId: id, at }];
    });
    await insertSettledEvents(db, events);
    // A full part may end in the middle of a settlement; the settlements before it are complete.
    const last = part.length < PART ? undefined : part.at(-1);
    const complete = last ? fanouts.findIndex((one) => one.settlement_id === last.settlement_id) : fanouts.length;
    const ids = fanouts.slice(0, complete).map((one) => one.settlement_id);
    await deleteFanouts(db, ids);
    if (last) await advanceFanout(db, { settlementId: last.settlement_id, afterPayment: last.id });
    return part.length + ids.length;
  });
}

/** Parts that one call of `writeSettledEventParts` writes. */
const PARTS = 4;

/** Writes pending `payment.settled` events for as long as a sweep may take. The next sweep continues. */
export async function writeSettledEventParts(deps: Pick<PaymentDeps, "db">): Promise<void> {
  for (let part = 0; part < PARTS; part += 1) if ((await writeSettledEvents(deps)) === 0) return;
}
