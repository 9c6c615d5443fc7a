import type { WebhookTables } from "../tables/webhook-tables.ts";
import { append, type GrantsOf, read, write } from "./privileges.ts";

/** What an account or an operator changes of a webhook endpoint. */
const endpointSettings = [
  "url",
  "event_types",
  "merchant_ids",
  "payload",
  "key_id",
  "secret",
  "previous_key_id",
  "previous_secret",
  "previous_until",
  "failing_since",
  "disabled_at",
  "disabled_reason",
  "deleted_at",
] as const;
/** The columns of a webhook endpoint that the console shows: of its URL only the origin. */
const shownEndpoint = [
  "id",
  "account_id",
  "mode",
  "origin",
  "event_types",
  "merchant_ids",
  "payload",
  "by_operator",
  "key_id",
  "previous_key_id",
  "failing_since",
  "failed_at",
  "slow_until",
  "disabled_at",
  "disabled_reason",
  "owner",
  "lease_until",
  "created_at",
  "deleted_at",
] as const;
/** The columns of a webhook endpoint that people may read: no secret. */
const readableEndpoint = [...shownEndpoint, "url"] as const;
/** The columns of an event about a webhook endpoint. */
const endpointEvent = ["account_id", "mode", "merchant_id", "type", "endpoint_id", "detail", "at"] as const;

export const webhookGrants: GrantsOf<WebhookTables> = {
  webhook_endpoint: {
    // The secrets are encrypted, and the api has no key that decrypts them.
    api: { ...append, update: endpointSettings },
    worker: {
      select: "all",
      update: [
        "owner",
        "lease_until",
        "due_retries",
        "failing_since",
        "failed_at",
        "slow_until",
        "disabled_at",
        "disabled_reason",
      ],
    },
    admin: { ...append, update: endpointSettings },
    board: { select: shownEndpoint },
    reader: { select: readableEndpoint },
  },
  // A trigger inserts it.
  webhook_former_filter: { worker: read, reader: read },
  // Triggers insert the events of payments and changes, and the deliveries of all events.
  webhook_event: {
    api: { select: "all", insert: endpointEvent, update: ["position"] },
    worker: append,
    board: { select: ["id", "type", "sequence", "payment_id", "refund_id", "at"] },
    admin: { select: "all", insert: endpointEvent, update: ["position"] },
    reader: read,
  },
  webhook_event_list: { api: write, admin: write, reader: read },
  webhook_delivery: {
    // Sends events again.
    api: { ...append, update: ["state", "attempts_made", "last_outcome", "delivered_at", "due_at"] },
    worker: { select: "all", update: "all" },
    board: read,
    admin: { ...append, update: ["state", "attempts_made", "last_outcome", "delivered_at", "due_at"] },
    reader: read,
  },
  webhook_attempt: {
    api: read,
    worker: { ...append, delete: true },
    admin: read,
    reader: { select: ["event_id", "endpoint_id", "id", "at", "duration_ms", "outcome"] },
  },
  webhook_fanout: { worker: { select: "all", update: ["after_payment"], delete: true }, reader: read },
};
