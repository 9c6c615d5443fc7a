import type { EventApprovalKey } from "../../db/queries/event-objects.ts";
import type { EventRow } from "../../db/queries/webhook-events.ts";
import { toActor } from "../merchants/decide-changes.ts";

/** Returns the data of an event about an approval key: the key at the time of the event. */
export function toApprovalKeyData({ type }: EventRow, key: EventApprovalKey): object {
  const isRevoked = type === "approval_key.revoked";
  const registrar = { kind: key.registrar_kind, id: key.registrar_id, address: key.registrar_address };
  const revoker = key.revoker_kind && { kind: key.revoker_kind, id: key.revoker_id, address: key.revoker_address };
  return {
    status: isRevoked ? "revoked" : "registered",
    registered_at: key.created_at,
    registered_by: toActor(registrar),
    applies_at: key.applies_at,
    revoked: isRevoked ? { revoked_at: key.revoked_at, revoked_by: revoker && toActor(revoker) } : null,
  };
}
