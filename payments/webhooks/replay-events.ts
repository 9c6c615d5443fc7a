import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries, type JsonObject } from "../../db/queries/audit-entries.ts";
import {
  type DeliveryState,
  listDeliveryRows,
  replayDeliveries,
  replayDelivery,
} from "../../db/queries/webhook-deliveries.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { Owner } from "../merchants/merchants.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { findEndpoint } from "./webhook-endpoints.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };

/** An event and the state of its delivery. `lastOutcome` is an HTTP status, or the reason why there was none. */
export type DeliveryView = {
  eventId: string;
  /** The payment, or the change of a destination, that the event is about. */
  paymentId: string | null;
  changeId: string | null;
  type: string;
  at: Date;
  state: DeliveryState;
  attemptsMade: number;
  lastOutcome: string | null;
  deliveredAt: Date | null;
  dueAt: Date | null;
};

/**
 * Selects events to send again: one event, a period (`since` inclusive, `until` exclusive), or all that were given up.
 */
export type Replay = { eventId: string } | { since: Date; until: Date } | { state: "given_up" };

/** Lists the events of the endpoint of an account and mode, newest first. Refuses like `findEndpoint`. */
export async function listDeliveries(
  deps: Pick<Deps, "db">,
  args: Owner & { paymentId?: string | undefined; state?: DeliveryState | undefined; limit: number },
): Promise<Result<DeliveryView[]>> {
  const endpoint = await findEndpoint(deps, args);
  if (!endpoint.ok) return endpoint;
  const rows = await listDeliveryRows(deps.db, { ...args, endpointId: endpoint.value.id });
  return done(
    rows.map((row) => ({
      eventId: row.id,
      paymentId: row.payment_id,
      changeId: row.change_id,
      type: row.type,
      at: row.at,
      state: row.state,
      attemptsMade: row.attempts_made,
      lastOutcome: row.last_outcome,
      deliveredAt: row.delivered_at,
      dueAt: row.due_at,
    })),
  );
}

/**
 * Sends delivered or given-up events again, under the same event ids and with a new retry schedule. An event selected
 * by its id is also sent at once if it is still pending. Returns how many. Refuses like `findEndpoint`, and with
 * `invalid_params` an event of another endpoint.
 */
export async function replayEvents(
  deps: Deps,
  args: Owner & Replay & { actor: AuditActor },
): Promise<Result<{ count: number }>> {
  const endpoint = await findEndpoint(deps, args);
  if (!endpoint.ok) return endpoint;
  const at = deps.now();
  const of = { endpointId: endpoint.value.id, at };
  return inTransaction(deps.db, async (db) => {
    const count =
      "eventId" in args
        ? Number(await replayDelivery(db, { ...of, id: args.eventId }))
        : await replayDeliveries(db, { ...of, which: args });
    if ("eventId" in args && count === 0) return refuse("invalid_params", "eventId: is not an event of this endpoint");
    const entry = { actor: args.actor, action: "webhook_events.replayed", subject: of.endpointId, at };
    await insertAuditEntries(db, [{ ...entry, before: null, after: { ...describeReplay(args), count } }]);
    return done({ count });
  });
}

function describeReplay(replay: Replay): JsonObject {
  if ("eventId" in replay) return { eventId: replay.eventId };
  if ("state" in replay) return { state: replay.state };
  return { since: replay.since.toISOString(), until: replay.until.toISOString() };
}
