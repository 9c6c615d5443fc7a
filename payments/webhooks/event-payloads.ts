import {
  listEventApprovalKeys,
  listEventChanges,
  listEventPayments,
  listEventRefunds,
} from "../../db/queries/event-objects.ts";
import type { EventRow } from "../../db/queries/webhook-events.ts";
import type { Db } from "../../db/tables.ts";
import { toApprovalKeyData } from "./approval-key-payload.ts";
import { toDestinationData } from "./destination-payload.ts";
import { toPaymentData } from "./payment-payload.ts";
import { toRefundData } from "./refund-payload.ts";

/** Version of the payload format (wire contract, part 10). Within a version, members are only added. */
const API_VERSION = "2026-05-18";

/** An event as endpoints and readers get it. */
export type EventPayload = { id: string; type: string; api_version: string; created_at: Date; data: object };

/** `full`: the whole object at the time of the event. `thin`: its id, so that no data of a payment leaves the service. */
export type PayloadKind = "full" | "thin";

/**
 * Returns events as they are sent, in the order of the rows. Each is a snapshot of its object at the time of the event: all
 * of its values were written by then, so every delivery attempt sends the same bytes. Two things can change: a refund's amount and
 * receiver, after a restore of the database (refund-payload.ts), and what a payment in `processing` says of its buyer's choice, when other
 * money pays it (replace-unsent.ts).
 */
export async function readPayloads(
  { db }: { db: Db },
  rows: readonly EventRow[],
  kind: PayloadKind,
): Promise<EventPayload[]> {
  const idsOf = (column: "payment_id" | "change_id" | "refund_id") => [
    ...new Set(rows.flatMap((row) => row[column] ?? [])),
  ];
  const isFull = kind === "full";
  const payments = isFull ? await listEventPayments(db, idsOf("payment_id")) : [];
  const changes = isFull ? await listEventChanges(db, idsOf("change_id")) : [];
  const refunds = isFull ? await listEventRefunds(db, idsOf("refund_id")) : [];
  const keys = isFull ? await listEventApprovalKeys(db, rows.flatMap(namedKey)) : [];
  const paymentOf = new Map(payments.map((one) => [one.id, one]));
  const refundOf = new Map(refunds.map((one) => [one.id, one]));
  const changeOf = new Map(changes.map((one) => [one.id, one]));
  const describe = (row: EventRow): object => {
    const payment = paymentOf.get(row.payment_id ?? "");
    if (payment) return toPaymentData(row, payment);
    const change = changeOf.get(row.change_id ?? "");
    if (change) return toDestinationData(row, change);
    const refund = refundOf.get(row.refund_id ?? "");
    if (refund) return toRefundData(row, refund);
    const key = keys.find((one) => one.merchant_id === row.merchant_id && one.public_key === row.approval_key);
    if (key) return toApprovalKeyData(row, key);
    return row.detail ? { reason: row.detail.reason, changed_by: row.detail.changed_by } : {};
  };
  return rows.map((row) => {
    const { id, type, at } = row;
    const data = { ...toReference(row), ...(isFull ? describe(row) : {}) };
    return { id, type, api_version: API_VERSION, created_at: at, data };
  });
}

const namedKey = ({ merchant_id: merchantId, approval_key: publicKey }: EventRow) =>
  merchantId === null || publicKey === null ? [] : [{ merchantId, publicKey }];

/** Returns what every payload says: which object the event is about, and whose it is. */
function toReference({
  payment_id,
  change_id,
  refund_id,
  approval_key,
  endpoint_id,
  merchant_id,
  mode,
}: EventRow): object {
  return {
    ...(payment_id === null ? {} : { payment_id }),
    ...(change_id === null ? {} : { change_id }),
    ...(refund_id === null ? {} : { refund_id }),
    ...(approval_key === null ? {} : { public_key: approval_key }),
    ...(endpoint_id === null ? {} : { endpoint_id }),
    ...(merchant_id === null ? {} : { merchant_id }),
    live: mode === "live",
  };
}
