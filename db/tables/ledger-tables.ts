import type { Generated } from "kysely";
import type { Finding } from "../findings.ts";
import type { Machine } from "../states.ts";

export type LedgerTables = {
  transition: { machine: Machine; from_state: string; to_state: string };
  event: {
    id: Generated<number>;
    machine: Machine;
    subject: string;
    from_state: string;
    to_state: string;
    detail: Record<string, unknown> | null;
    at: Date;
  };
  ledger_group: {
    id: Generated<number>;
    kind: string;
    subject: string;
    chain: string | null;
    block_number: number | null;
    block_id: string | null;
    tx_hash: string | null;
    log_index: number | null;
    /** An operator's note on a manual booking. */
    note: string | null;
    at: Date;
  };
  ledger_entry: { id: Generated<number>; group_id: number; account: string; asset: string; amount: bigint };
  /** Sums of entries by UTC day (YYYY-MM-DD), kept by a trigger. Every sum is spread over several shards. */
  ledger_day: { account: string; asset: string; day: string; shard: number; amount: bigint };
  merchant_balance: { merchant_id: string; asset: string; amount: bigint; next_settlement: Generated<number> };
  /** The newest comparison of the ledger with a chain: `held` should equal `booked` plus `in_flight`. */
  reconciliation: {
    chain: string;
    account: string;
    asset: string;
    block_number: number;
    booked: bigint;
    in_flight: bigint;
    held: bigint;
    at: Date;
  };
  /** When the rows of the database are compared with each other next, and when they were last. */
  ledger_check: { singleton: Generated<boolean>; due_at: Date; checked_at: Generated<Date> };
  /** What the newest of these checks has found. */
  ledger_finding: Finding & { at: Date };
};
