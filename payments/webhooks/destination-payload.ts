import type { EventChange } from "../../db/queries/event-objects.ts";
import type { EventRow } from "../../db/queries/webhook-events.ts";
import { toActor } from "../merchants/decide-changes.ts";

const statuses = {
  "destination.change_requested": "requested",
  "destination.approved": "approved",
  "destination.applied": "applied",
  "destination.rejected": "rejected",
} as const;

/** Returns the data of an event about a change of a destination: the change at the time of the event. */
export function toDestinationData(event: EventRow, change: EventChange): object {
  const status = Object.entries(statuses).find(([type]) => type === event.type)?.[1];
  const requester = {
    kind: change.requester_kind,
    id: change.requester_id,
    address: change.requester_address,
  };
  const decider = change.decider_kind && {
    kind: change.decider_kind,
    id: change.decider_id,
    address: change.decider_address,
  };
  const isApproved = decider !== null && (status === "approved" || status === "applied");
  return {
    settlement_id: change.destination_id,
    status,
    asset: change.given_asset ?? change.asset,
    previous_destination: change.before,
    destination: change.after,
    requested_at: change.created_at,
    requested_by: toActor(requester),
    applies_at: change.applies_at,
    approved: isApproved ? { approved_at: change.decided_at, approved_by: toActor(decider) } : null,
    applied: status === "applied" ? { applied_at: change.applied_at } : null,
    rejected:
      status === "rejected" && decider !== null
        ? { rejected_at: change.decided_at, rejected_by: toActor(decider), reason: change.rejection }
        : null,
  };
}
