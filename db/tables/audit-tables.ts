import type { ColumnType, GeneratedAlways } from "kysely";
import type { ActorKind } from "./column-types.ts";

/** A json column. It is written as text, because the hash of the row covers the text. */
type JsonText = ColumnType<Record<string, unknown> | null, string | null, never>;

export type AuditTables = {
  /** The rows that functions lock, instead of advisory locks, which any login may take. */
  named_lock: { name: string };
  payer_lock: { number: number };
  /** The newest migration after which `migrate` has revoked what the grants do not name. One row at most. */
  revoked_grants: { migration: string };
  /** What an API key, an operator or a worker changed. A trigger sets the day, the sequence and the hash. */
  audit_entry: {
    /** YYYY-MM-DD, UTC. */
    day: GeneratedAlways<string>;
    sequence: GeneratedAlways<number>;
    at: Date;
    /** `login`: someone with a login of the database, without the service. */
    actor_kind: ActorKind | "login";
    actor_id: string;
    actor_address: string | null;
    action: string;
    subject: string;
    before: JsonText;
    after: JsonText;
    hash: GeneratedAlways<Buffer>;
    transaction_id: GeneratedAlways<string>;
  };
  /** The last entry of each day that has ended, and when the sink accepted it. */
  audit_head: { day: string; sequence: number; hash: Buffer; at: Date; exported_at: Date | null };
};
