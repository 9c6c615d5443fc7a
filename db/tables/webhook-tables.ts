import type { ColumnType, Generated } from "kysely";
import type { Mode, Optional } from "./column-types.ts";

/** What the payload of an event says of an endpoint. */
type EndpointDetail = {
  reason: "failing" | "requested" | null;
  /** Null when the service itself has disabled the endpoint. */
  changed_by: { type: "key" | "operator"; id: string | null; address: string | null } | null;
};

export type WebhookTables = {
  /** Where an account receives events of its payments. Secrets are encrypted. */
  webhook_endpoint: {
    id: string;
    account_id: string;
    mode: Mode;
    url: string;
    /** The scheme, host and port of the URL: the rest often holds a secret. */
    origin: ColumnType<string | null, never, never>;
    /** What the endpoint receives; null: events of every type, of every merchant. */
    event_types: string[] | null;
    merchant_ids: string[] | null;
    payload: Generated<"full" | "thin">;
    /** An operator has registered it: API keys cannot change it. */
    by_operator: boolean;
    key_id: string;
    secret: Buffer;
    previous_key_id: string | null;
    previous_secret: Buffer | null;
    previous_until: Date | null;
    /** The first failure since the last success, or since a time without requests. */
    failing_since: Optional<Date>;
    /** The last failure, to the minute. */
    failed_at: Optional<Date>;
    /** Until when a queue of its own serves it, because one of its requests took seconds. */
    slow_until: Optional<Date>;
    disabled_at: Optional<Date>;
    disabled_reason: Optional<"failing" | "requested">;
    /** The worker that delivers to the endpoint now. */
    owner: string | null;
    /** Until when `owner` delivers to it; without an owner, until when its job is expected to start. */
    lease_until: Date | null;
    /** How often a job has been enqueued for it. */
    due_retries: Generated<number>;
    created_at: Date;
    deleted_at: Date | null;
  };
  /** The filters by which an endpoint received events until a time. A trigger inserts it. */
  webhook_former_filter: {
    id: ColumnType<number, never, never>;
    endpoint_id: string;
    event_types: string[] | null;
    merchant_ids: string[] | null;
    until: Date;
  };
  /** What happened to an account's objects. Triggers insert it with the state change itself. */
  webhook_event: {
    id: Generated<string>;
    sequence: ColumnType<number, never, never>;
    account_id: string;
    mode: Mode;
    merchant_id: string | null;
    type: string;
    /** 0: notices of changes, and test events; 1: payments, refunds, and changes of endpoints; 2: payouts. */
    priority: ColumnType<number, never, never>;
    /** What the event is about: a payment, a change of a destination, a refund, an approval key of the merchant, or an endpoint. */
    payment_id: Optional<string>;
    change_id: Optional<string>;
    refund_id: Optional<string>;
    approval_key: Optional<string>;
    endpoint_id: Optional<string>;
    detail: ColumnType<EndpointDetail | null, string | null | undefined, never>;
    state_version: Generated<number>;
    at: Date;
    /** The place in the account's list of events; null until it is numbered. */
    position: Optional<number>;
  };
  /** The highest position that an account's events have. */
  webhook_event_list: { account_id: string; mode: Mode; last_position: number };
  /** One event for one endpoint. A trigger inserts it with the event. */
  webhook_delivery: {
    event_id: string;
    endpoint_id: string;
    /** That of the event. */
    priority: number;
    at: Date;
    state: Generated<"pending" | "delivered" | "given_up">;
    attempts_made: Generated<number>;
    last_outcome: string | null;
    delivered_at: Date | null;
    /** When the next attempt is due; null unless the delivery is pending. */
    due_at: Date | null;
  };
  /** A request that was sent, with the beginning of the response. */
  webhook_attempt: {
    event_id: string;
    endpoint_id: string;
    id: ColumnType<number, never, never>;
    at: Date;
    duration_ms: number;
    outcome: string;
    response_type: string | null;
    response_body: string | null;
  };
  /** Payments of a paid settlement whose events are still to be inserted: those with an id above `after_payment`. */
  webhook_fanout: { settlement_id: string; at: Date; after_payment: Generated<string> };
};
