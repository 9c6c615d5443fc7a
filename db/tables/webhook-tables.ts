import type { Generated } from "kysely";
import type { Mode } from "./column-types.ts";

export type WebhookTables = {
  /** Where an account receives events of its payments. Secrets are encrypted. */
  webhook_endpoint: {
    id: string;
    account_id: string;
    mode: Mode;
    url: string;
    key_id: string;
    secret: Buffer;
    previous_key_id: string | null;
    previous_secret: Buffer | null;
    previous_until: Date | null;
    /** The worker that delivers to the endpoint now. */
    owner: string | null;
    /** Until when `owner` delivers to it; without an owner, until when its job is expected to start. */
    lease_until: Date | null;
    /** How often a job has been enqueued for it. */
    due_retries: Generated<number>;
    created_at: Date;
    deleted_at: Date | null;
  };
  /** One event for one endpoint. Triggers insert it with the state change itself. */
  webhook_delivery: {
    id: string;
    endpoint_id: string;
    /** What the event is about: a payment, or a change of a destination. */
    payment_id: string | null;
    change_id: string | null;
    type: string;
    state_version: number;
    at: Date;
    state: Generated<"pending" | "delivered" | "given_up">;
    attempts_made: Generated<number>;
    last_outcome: string | null;
    delivered_at: Date | null;
    /** When the next attempt is due; null unless the delivery is pending. */
    due_at: Date | null;
  };
  /** Payments of a paid settlement whose events are still to be inserted: those with an id above `after_payment`. */
  webhook_fanout: { settlement_id: string; endpoint_id: string; at: Date; after_payment: Generated<string> };
};
