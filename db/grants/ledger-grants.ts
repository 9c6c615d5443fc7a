import type { LedgerTables } from "../tables/ledger-tables.ts";
import type { PayoutTables } from "../tables/payout-tables.ts";
import type { RetentionTables } from "../tables/retention-tables.ts";
import { append, type GrantsOf, ofWorkers, read, readers, write, writeAndDelete } from "./privileges.ts";

/** Settlements, refunds, the ledger and the events. */
export const ledgerGrants: GrantsOf<LedgerTables & PayoutTables & RetentionTables> = {
  // What is owed and was paid
  settlement: { ...ofWorkers, board: read, admin: write },
  // A refund that is raised deducts from the same payment again.
  settlement_deduction: { ...readers, worker: { ...append, update: ["amount"] } },
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
};
