import {
  type AttemptRow,
  type DeliveryRow,
  type DeliveryState,
  findDeliveryRow,
  KEPT_ATTEMPTS,
  listAttemptRows,
  listDeliveryRows,
} from "../../db/queries/webhook-deliveries.ts";
import { findEndpointRow } from "../../db/queries/webhook-endpoints.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import { type EndpointQuery, noEndpoint } from "./endpoint-views.ts";
import { type EventPayload, readPayloads } from "./event-payloads.ts";

/** An event and the state of its delivery. `lastOutcome` is an HTTP status, or the reason why there was none. */
export type DeliveryView = {
  eventId: string;
  /** The payment, the change of a destination, the refund, the approval key, or the endpoint that the event is about. */
  paymentId: string | null;
  changeId: string | null;
  refundId: string | null;
  approvalKey: string | null;
  endpointId: string | null;
  type: string;
  at: Date;
  state: DeliveryState;
  attemptsMade: number;
  lastOutcome: string | null;
  deliveredAt: Date | null;
  dueAt: Date | null;
};

/** A request that was sent, and the beginning of the response. */
type AttemptView = {
  at: Date;
  durationMs: number;
  outcome: string;
  responseType: string | null;
  responseBody: string | null;
};

/** A delivery with the body of its requests, and the newest requests. */
export type DeliveryDetail = DeliveryView & { payload: EventPayload; attempts: AttemptView[] };

/** Lists the events of an endpoint, newest first. Refuses an unknown endpoint with `webhook_endpoint_not_found`. */
export async function listDeliveries(
  { db }: { db: Db },
  args: EndpointQuery & {
    paymentId?: string | undefined;
    state?: DeliveryState | undefined;
    cursor?: string | undefined;
    limit: number;
  },
): Promise<Result<Page<DeliveryView>>> {
  const after = readCursor(args.cursor, "time");
  if (!after.ok) return after;
  if (!(await findEndpointRow(db, args))) return noEndpoint();
  const { endpointId, paymentId, state, limit } = args;
  const rows = await listDeliveryRows(db, { endpointId, paymentId, state, after: after.value, limit: limit + 1 });
  const page = toPage(rows, limit, (row) => [row.at.toISOString(), row.id]);
  return done({ ...page, items: page.items.map(toDeliveryView) });
}

/** Returns the delivery of an event to an endpoint, with its requests. Refuses with `event_not_found` another event. */
export async function findDelivery(
  { db }: { db: Db },
  args: EndpointQuery & { eventId: string },
): Promise<Result<DeliveryDetail>> {
  const endpoint = await findEndpointRow(db, args);
  if (!endpoint) return noEndpoint();
  const row = await findDeliveryRow(db, args);
  if (!row) return noEvent();
  const [payload] = await readPayloads({ db }, [row], endpoint.payload);
  if (!payload) throw new Error(`the event ${row.id} has no payload`);
  const attempts = await listAttemptRows(db, { ...args, limit: KEPT_ATTEMPTS });
  return done({ ...toDeliveryView(row), payload, attempts: attempts.map(toAttemptView) });
}

/** Refuses a call for an event that does not exist for its caller. */
export const noEvent = () => refuse("event_not_found", "no such event");

function toDeliveryView(row: DeliveryRow): DeliveryView {
  return {
    eventId: row.id,
    paymentId: row.payment_id,
    changeId: row.change_id,
    refundId: row.refund_id,
    approvalKey: row.approval_key,
    endpointId: row.endpoint_id,
    type: row.type,
    at: row.at,
    state: row.state,
    attemptsMade: row.attempts_made,
    lastOutcome: row.last_outcome,
    deliveredAt: row.delivered_at,
    dueAt: row.due_at,
  };
}

function toAttemptView(row: AttemptRow): AttemptView {
  const { at, duration_ms: durationMs, outcome, response_type: responseType, response_body: responseBody } = row;
  return { at, durationMs, outcome, responseType, responseBody };
}
