import type { Tables } from "./tables.ts";

/**
 * The database roles of the processes. The owner, which runs the migrations, needs no entry. `admin` is the command
 * line of operators, `reader` is for people and dashboards that only look.
 */
export const roles = {
  api: "pay_api",
  worker: "pay_worker",
  board: "pay_board",
  admin: "pay_admin",
  reader: "pay_reader",
} as const;

export type Role = keyof typeof roles;

type Columns<T> = "all" | readonly (keyof T & string)[];
/** What a role may do with a table, and with which columns. */
type Privileges<T> = {
  readonly select?: Columns<T>;
  readonly insert?: Columns<T>;
  readonly update?: Columns<T>;
  readonly delete?: true;
};
/** The same of any table. */
export type AnyPrivileges = { readonly [P in keyof Privileges<object>]?: true | string | readonly string[] };
type TableGrants<T> = { readonly [R in Role]?: Privileges<T> };

const read = { select: "all" } as const;
/** Rows of these tables are added and never changed. */
const append = { select: "all", insert: "all" } as const;
const write = { select: "all", insert: "all", update: "all" } as const;
const writeAndDelete = { ...write, delete: true } as const;

/** Most tables are read by api, worker, command line and readers. A table names what differs. */
const readers = { api: read, worker: read, admin: read, reader: read } as const;
/** A table that only workers write. */
const ofWorkers = { ...readers, worker: write } as const;

/** The columns that a process writes when it appends to the audit log. */
const auditColumns = ["at", "actor_kind", "actor_id", "actor_address", "action", "subject", "before", "after"] as const;

/** A requested change of a destination can be decided, applied and reported, but not become another change. */
const decided = {
  select: "all",
  insert: "all",
  update: [
    "state",
    "decider_kind",
    "decider_id",
    "decider_address",
    "decided_at",
    "rejection",
    "applied_at",
    "reported_at",
  ],
} as const;

/** The columns that the revocation of an approval key changes. */
const revoked = ["revoked_at", "revoker_kind", "revoker_id", "revoker_address", "reported_at"] as const;

/** The columns that a new secret of an API key changes. */
const rotatedColumns = ["hash", "hint", "previous_hash", "previous_until"] as const;

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

/** The columns of an attempt that people may read: not what the wallet has signed. */
const readableAttempt = [
  "id",
  "payment_id",
  "option_id",
  "chain",
  "merchant_id",
  "verification",
  "state",
  "refusal",
  "created_at",
] as const;

/** What the operator console shows of a merchant and of a payment: nothing that merchants write about their buyers. */
const shownMerchant = [
  "id",
  "account_id",
  "mode",
  "name",
  "status",
  "payouts_held_at",
  "created_at",
  "deleted_at",
] as const;
const shownPayment = [
  "id",
  "account_id",
  "merchant_id",
  "mode",
  "reference_id",
  "unit",
  "value",
  "state",
  "failure_code",
  "cancelled_reason",
  "option_id",
  "asset",
  "tx_id",
  "sent_by_others",
  "paid_asset",
  "paid_amount",
  "fee",
  "settlement_id",
  "created_at",
  "updated_at",
  "expires_at",
  "due_at",
] as const;
/** The columns of a transfer and of a transaction that the operator console reads: no signatures and signed bytes. */
const shownTransfer = [
  "id",
  "purpose",
  "payment_id",
  "settlement_id",
  "refund_id",
  "kind",
  "chain",
  "asset",
  "token",
  "payer",
  "receiver",
  "amount",
  "authorization_nonce",
  "state",
  "lane_id",
  "lane_nonce",
  "hold_until",
  "retries",
  "last_error",
  "created_at",
  "due_at",
] as const;
const shownTransaction = [
  "lane_id",
  "nonce",
  "replacement",
  "chain",
  "hash",
  "gas_limit",
  "max_fee_per_gas",
  "max_priority_fee_per_gas",
  "state",
  "created_at",
  "block_number",
  "gas_used",
  "fee",
] as const;
/** The columns of a transfer, of a transaction and of a signed statement that hold no signature and no signed bytes. */
const readableTransfer = [
  ...shownTransfer,
  "valid_before",
  "last_valid_height",
  "smart_wallet",
  "code_hash",
  "alone",
  "due_retries",
] as const;
const readableTransaction = [
  ...shownTransaction,
  "last_valid_height",
  "nonce_account",
  "nonce_value",
  "nonce_slot",
  "broadcast_at",
  "block_id",
  "gas_price",
  "reverted",
] as const;
const readableStatement = ["id", "subject", "text", "signer", "created_at", "reported_at", "outcome"] as const;

/** Kysely's own tables. Every process compares the migrations that have run with those of its release. */
type MigrationTables = { kysely_migration: { name: string; timestamp: string }; kysely_migration_lock: object };
type Granted = Tables & MigrationTables;

/**
 * Which role may do what with which table. Every migration applies it, and takes away everything else. A role without an
 * entry may not even read the table. The reasons are in docs/decisions/database-roles.md.
 */
export const grants: { readonly [T in keyof Granted]: TableGrants<Granted[T]> } = {
  kysely_migration: { ...readers, board: read },
  kysely_migration_lock: {},
  // Only functions lock rows of these.
  named_lock: {},
  payer_lock: {},

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

  // Merchants
  logo: { ...readers, api: append },
  merchant: {
    ...readers,
    api: {
      select: "all",
      insert: [
        "id",
        "account_id",
        "mode",
        "name",
        "email",
        "status",
        "icon_url",
        "logo_id",
        "created_at",
        "deleted_at",
      ],
      update: ["name", "email", "status", "icon_url", "logo_id", "deleted_at"],
    },
    worker: { select: "all", update: ["payouts_held_at"] },
    board: { select: shownMerchant },
    admin: { ...append, update: ["name", "email", "status", "icon_url", "logo_id", "payouts_held_at", "deleted_at"] },
  },
  // A trigger writes the account of each change that applies. Operators set how it is paid.
  settlement_destination: {
    ...readers,
    admin: {
      select: "all",
      update: ["accumulation_ms", "accumulation_amount", "minimum", "direct", "accepts_other_assets", "updated_at"],
    },
  },
  destination_change: { api: decided, worker: decided, admin: decided, reader: read },
  // What operators and merchants have signed for the signer, and the keys of the merchants.
  signed_statement: {
    api: { select: readableStatement, insert: "all" },
    worker: { select: "all", update: ["reported_at", "outcome"] },
    admin: append,
    reader: { select: readableStatement },
  },
  approval_key: {
    ...readers,
    api: { ...append, update: revoked },
    worker: { select: "all", update: ["reported_at"] },
    admin: { ...append, update: revoked },
  },
  fee_policy: { ...readers, admin: writeAndDelete },
  collection_policy: { ...readers, admin: { ...append, delete: true } },

  // Payments
  payment: {
    ...readers,
    api: {
      select: "all",
      insert: [
        "id",
        "account_id",
        "merchant_id",
        "mode",
        "reference_id",
        "description",
        "metadata",
        "unit",
        "value",
        "state",
        "checkout",
        "created_at",
        "updated_at",
        "expires_at",
        "due_at",
      ],
      update: [
        "state",
        "state_version",
        "updated_at",
        "due_at",
        "failure_code",
        "cancelled_reason",
        "requester",
        "has_other_requesters",
      ],
    },
    worker: { select: "all", update: "all" },
    board: { select: shownPayment },
    admin: { select: "all", update: ["settlement_id", "due_at", "due_retries"] },
  },
  // A trigger inserts the rows.
  ended_payment: { ...readers, worker: { select: "all", delete: true } },
  summed_owner: ofWorkers,
  summed_kind: { ...readers, worker: append },
  summed_payment: { ...readers, worker: append },
  payment_sum: ofWorkers,
  customer: { ...readers, worker: append },
  customer_set: ofWorkers,
  payment_option: {
    ...readers,
    api: { ...append, update: ["blockhash_until"] },
    worker: { select: "all", update: ["blockhash_until"], delete: true },
    board: read,
  },
  attempt: {
    api: { ...append, update: ["state", "refusal", "due_at", "due_retries"], delete: true },
    worker: writeAndDelete,
    admin: { select: "all", update: ["due_at", "due_retries"] },
    board: { select: [...readableAttempt, "due_at"] },
    reader: { select: readableAttempt },
  },
  collected_data: {
    api: writeAndDelete,
    worker: { select: "all", update: "all", delete: true },
    admin: { select: "all", update: ["key_id", "ciphertext"], delete: true },
    reader: {
      select: ["id", "payment_id", "account", "attempt_id", "key_id", "created_at", "delete_at", "keep_until"],
    },
  },

  // What moves money
  transfer: {
    api: { select: readableTransfer },
    worker: write,
    board: { select: shownTransfer },
    reader: { select: readableTransfer },
    admin: { select: "all", update: ["due_at", "hold_until", "payer", "signature"] },
  },
  burned_gas: { ...readers, worker: writeAndDelete },
  lane: { ...ofWorkers, board: read },
  transaction: {
    api: { select: readableTransaction },
    worker: write,
    board: { select: shownTransaction },
    admin: read,
    reader: { select: readableTransaction },
  },
  created_account: ofWorkers,
  payout_marker: { ...readers, worker: writeAndDelete },

  // What is owed and was paid
  settlement: { ...ofWorkers, board: read, admin: write },
  settlement_deduction: { ...readers, worker: append },
  refund: {
    ...readers,
    api: {
      select: "all",
      insert: ["id", "payment_id", "number", "amount", "state", "created_at", "updated_at", "due_at"],
      // Lets the api lock refunds.
      update: ["updated_at"],
    },
    worker: write,
    board: read,
    admin: write,
  },
  payout_queue: {
    ...readers,
    worker: { select: "all", update: "all" },
    board: read,
    admin: { select: "all", update: "all" },
  },
  merchant_balance: { ...ofWorkers, admin: write },

  // The ledger and the events
  transition: readers,
  event: { api: append, worker: append, board: read, admin: append, reader: read },
  ledger_group: { ...readers, worker: append, board: read, admin: append },
  ledger_entry: { ...readers, worker: append, board: read, admin: append },
  ledger_day: readers,
  // What workers have removed. They may not delete the rows of payments themselves: `remove_history` does so for them.
  retention: {
    worker: { select: "all", update: ["days", "after_payment", "removed", "ran_at"] },
    admin: read,
    board: read,
    reader: read,
  },
  retained_payment: { worker: writeAndDelete, admin: read, board: read, reader: read },
  reconciliation: {
    ...readers,
    worker: { ...append, delete: true },
    admin: { ...append, delete: true },
  },
  ledger_check: { ...ofWorkers, worker: { select: "all", update: "all" } },
  ledger_finding: { ...readers, worker: { ...append, delete: true } },

  // Chains
  chain_cursor: { ...ofWorkers, board: read },
  rpc_endpoint: { ...readers, worker: writeAndDelete, board: read },
  asset_unit: { ...ofWorkers, board: read },
  chain_block: { ...readers, worker: writeAndDelete, board: read },
  observation: { ...ofWorkers, board: read },
  dust: ofWorkers,
  failed_booking: {
    ...readers,
    worker: writeAndDelete,
    board: read,
    admin: { select: "all", update: ["retry_at"] },
  },
  asset_backfill: { ...readers, worker: writeAndDelete },
  account_cursor: ofWorkers,
  history_entry: { ...readers, worker: writeAndDelete },
  database_epoch: { ...readers, worker: { select: "all", update: "all" } },

  // Webhooks
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

/** Functions that a role may call, by their signature. Trigger functions need no privilege, and no other role may call them. */
export const callable: Readonly<Record<string, readonly Role[]>> = {
  "ledger_day_of(timestamptz)": ["api", "worker", "admin", "reader"],
  // Part of an index: every role that writes or searches quotes.
  "option_hour(timestamptz)": ["api", "worker", "board", "admin", "reader"],
  "database_identity(oid)": ["api", "worker", "admin", "reader"],
  "remove_history(text, text[], timestamptz, boolean)": ["worker"],
  "lock_audit_chain()": ["worker", "admin"],
  "try_lock_destination_reports()": ["worker"],
  "lock_payers(text[])": ["worker"],
  "lock_inventory(text)": ["worker"],
  "lock_reconciliation(text)": ["worker", "admin"],
  "lock_exception(bigint)": ["worker", "admin"],
  "lock_logins()": ["board"],
  "wake_payouts(text, text, text)": ["api", "worker", "admin"],
  "withdraw_refund(text, timestamptz)": ["api", "worker", "admin"],
  "record_retried_jobs(bytea, text, text, integer)": ["board"],
  "attach_signatures(text, bytea, bytea, timestamptz)": ["api"],
  "record_simulated_payment(text, text, text, numeric)": ["api"],
};
