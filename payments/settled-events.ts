import {
  deleteFanouts,
  insertSettledEvents,
  listFanoutPayments,
  lockFanouts,
  moveFanout,
} from "../db/webhook-fanout.ts";
import type { PaymentDeps } from "./deps.ts";

/** Events written in one transaction. */
const PART = 500;
/** Settlements that share one transaction: most have a single payment. */
const SETTLEMENTS = 100;

/**
 * Writes the next `payment.settled` events that paid settlements owe an endpoint, at most 500 in one transaction.
 * The transaction that confirms a payout only notes that its events are owed, so its work does not depend on how many
 * payments the payout has. Each part moves the settlement's cursor in the transaction that writes the events: a crash or
 * a second caller writes none twice and leaves none out. Returns how many payments and settlements were finished; 0 when
 * nothing is left.
 */
export async function writeSettledEvents(
  deps: Pick<PaymentDeps, "db" | "now">,
  args: { endpointId: string },
): Promise<number> {
  const { endpointId } = args;
  return deps.db.transaction().execute(async (db) => {
    const fanouts = await lockFanouts(db, { endpointId, limit: SETTLEMENTS });
    if (fanouts.length === 0) return 0;
    const part = await listFanoutPayments(db, { fanouts, limit: PART });
    const paidAt = new Map(fanouts.map(({ settlementId, at }) => [settlementId, at]));
    const dueAt = deps.now();
    const events = part.map(({ id, settlementId }) => ({ paymentId: id, at: paidAt.get(settlementId) ?? dueAt }));
    await insertSettledEvents(db, { endpointId, events, dueAt });
    // A full part may have ended within the settlement of its last payment; those before that one are complete.
    const last = part.length < PART ? undefined : part.at(-1);
    const complete = last ? fanouts.findIndex((one) => one.settlementId === last.settlementId) : fanouts.length;
    const ids = fanouts.slice(0, complete).map(({ settlementId }) => settlementId);
    await deleteFanouts(db, { endpointId, ids });
    if (last) await moveFanout(db, { endpointId, settlementId: last.settlementId, afterPayment: last.id });
    return part.length + ids.length;
  });
}
