import type { Generated } from "kysely";
import type { Optional } from "./column-types.ts";

/** The tables of history whose rows leave; `webhook_event` includes the deliveries and the requests that were sent. */
export type RetainedRelation = "attempt" | "webhook_event" | "event" | "payment_option";

export type RetentionTables = {
  /** How far each table of history has been worked through. */
  retention: {
    relation: RetainedRelation;
    /** Days after which rows leave; null: never. */
    days: Optional<number>;
    /** The rows of the payments up to this one have left, except those of `retained_payment`. */
    after_payment: Generated<string>;
    /** Rows that have left since the beginning. */
    removed: Generated<number>;
    ran_at: Optional<Date>;
  };
  /** Payments that were passed while some of their rows had to stay. */
  retained_payment: {
    relation: RetainedRelation;
    payment_id: string;
    retry_at: Date;
    /** Why their rows could not be removed; null when they only had to stay. */
    error: string | null;
  };
};
