import type { AccountTables } from "../tables/account-tables.ts";
import type { AuditTables } from "../tables/audit-tables.ts";
import type { OperatorTables } from "../tables/operator-tables.ts";
import { append, type GrantsOf, read, readers, write, writeAndDelete } from "./privileges.ts";

/** The columns that a process writes when it appends to the audit log. */
const auditColumns = ["at", "actor_kind", "actor_id", "actor_address", "action", "subject", "before", "after"] as const;

/** The columns that a new secret of an API key changes. */
const rotatedColumns = ["hash", "hint", "previous_hash", "previous_until"] as const;

/** Accounts, the audit log and operators. */
export const accountGrants: GrantsOf<AccountTables & AuditTables & OperatorTables> = {
  // Only functions lock rows of these.
  named_lock: {},
  payer_lock: {},
  // Only `migrate` reads and writes it.
  revoked_grants: {},

  // Accounts
  account: {
    ...readers,
    api: { ...read, update: ["api_version"] },
    admin: { ...append, update: ["api_version", "wallet_cancellation_allowed", "destination_waiting_hours"] },
  },
  api_key: {
    api: { ...append, update: [...rotatedColumns, "revoked_at", "last_used_at", "last_used_address"] },
    admin: { ...append, update: [...rotatedColumns, "revoked_at"] },
    reader: {
      select: [
        "id",
        "account_id",
        "mode",
        "hint",
        "previous_until",
        "scopes",
        "merchant_ids",
        "allowed_cidrs",
        "expires_at",
        "created_by",
        "created_at",
        "revoked_at",
        "last_used_at",
        "last_used_address",
      ],
    },
  },
  api_key_maker: { api: append, admin: append, reader: read },
  app_id: { api: { ...append, update: ["revoked_at"] }, admin: { ...append, update: ["revoked_at"] }, reader: read },
  frame_origin: { api: read, admin: { ...append, delete: true }, reader: read },
  idempotency: {
    api: writeAndDelete,
    worker: { select: "all", delete: true },
    reader: { select: ["account_id", "mode", "operation", "key", "status", "created_at"] },
  },

  // The audit log. A trigger numbers and chains the entries.
  audit_entry: {
    api: { insert: auditColumns },
    worker: { select: "all", insert: auditColumns },
    admin: { select: "all", insert: auditColumns },
    reader: read,
  },
  audit_head: { worker: { ...append, update: ["exported_at"] }, admin: read, reader: read },

  // Operators: the command line manages them, bull-board signs them in.
  operator: {
    worker: { select: ["name", "role", "disabled_at"] },
    board: { select: "all", update: ["totp_step"] },
    admin: write,
    reader: { select: ["name", "role", "created_at", "disabled_at"] },
  },
  operator_session: {
    // Not the times: Postgres ends each session.
    board: { select: "all", insert: ["token_hash", "operator", "address"], delete: true },
    admin: { select: "all", delete: true },
  },
  operator_login_attempt: { board: { ...append, delete: true } },
  // The board requests, a worker carries out.
  operator_request: {
    worker: { select: "all", update: ["state", "outcome", "ended_at"], delete: true },
    board: {
      select: "all",
      // Not the time of the request: a worker limits the requests of an hour by it.
      insert: ["id", "operator", "address", "action", "subject", "args"],
    },
    admin: read,
    reader: read,
  },
};
