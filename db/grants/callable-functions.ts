import type { Role } from "./roles.ts";

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
