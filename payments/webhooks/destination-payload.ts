import type { DueDestinationEvent } from "../../db/queries/destination-events.ts";
import { toActor } from "../merchants/decide-changes.ts";
import { API_VERSION } from "./webhook-payload.ts";

const statuses = {
  "destination.change_requested": "requested",
  "destination.approved": "approved",
  "destination.applied": "applied",
  "destination.rejected": "rejected",
} as const;

/** Returns true for an event about a change of a destination. */
export function isDestinationEvent(event: { type: string }): event is DueDestinationEvent {
  return event.type in statuses;
}

/**
 * Returns the body of an event about a change of a destination: a snapshot of the change at the time of the event. All of
 * its values were written by then and never change, so every delivery attempt sends the same bytes.
 */
export function toDestinationPayload(event: DueDestinationEvent): string {
  const status = Object.entries(statuses).find(([type]) => type === event.type)?.[1];
  const requester = {
    kind: event.requester_kind,
    id: event.requester_id,
    address: event.requester_address,
  };
  const decider = event.decider_kind && {
    kind: event.decider_kind,
    id: event.decider_id,
    address: event.decider_address,
  };
  const isApproved = decider !== null && (status === "approved" || status === "applied");
  return JSON.stringify({
    id: event.id,
    type: event.type,
    api_version: API_VERSION,
    created_at: event.at,
    data: {
      change_id: event.change_id,
      merchant_id: event.merchant_id,
      live: event.mode === "live",
      settlement_id: event.destination_id,
      status,
      asset: event.asset,
      previous_destination: event.before,
      destination: event.after,
      requested_at: event.created_at,
      requested_by: toActor(requester),
      applies_at: event.applies_at,
      approved: isApproved ? { approved_at: event.decided_at, approved_by: toActor(decider) } : null,
      applied: status === "applied" ? { applied_at: event.applied_at } : null,
      rejected:
        status === "rejected" && decider !== null
          ? { rejected_at: event.decided_at, rejected_by: toActor(decider), reason: event.rejection }
          : null,
    },
  });
}
