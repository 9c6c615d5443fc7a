import type { Generated } from "kysely";
import type { Due, FailedKind, Lease, Optional } from "./column-types.ts";

export type ChainTables = {
  chain_cursor: {
    chain: string;
    number: number;
    block_id: string;
    final_number: number;
    created_at: Generated<Date>;
    reached_head_at: Date | null;
    /** The chain's own time up to which everything has been read: of the cursor's block, on Solana of a final slot. */
    chain_time: Optional<Date>;
    /** The assets of which everything up to the cursor has been read. */
    assets: Generated<string[]>;
    /** When the ledger is compared with the chain next. */
    reconcile_at: Generated<Date>;
    /** The database's epoch in which the chain was read again, and the height up to which that is still to be done. */
    epoch: Generated<string | null>;
    epoch_height: Generated<number | null>;
  } & Lease &
    Due;
  chain_block: {
    chain: string;
    number: number;
    hash: string;
    parent_hash: string;
    base_fee: bigint;
    at: Date;
    /** The endpoint that returned this block, and the blocks below it that are not stored. */
    source_endpoint: string | null;
  };
  /** An RPC endpoint of the networks file, as one worker last saw it. */
  rpc_endpoint: {
    chain: string;
    name: string;
    worker: string;
    reported_at: Date;
    answered_at: Date | null;
    failed_at: Date | null;
    /** The code of the last failure. */
    error: string | null;
    /** Calls since the worker started, and those of them that failed. */
    calls: number;
    failures: number;
    /** The newest block at the last comparison of the chain's endpoints. */
    height: number | null;
  };
  /** An asset that is or was in the networks file. */
  asset_unit: { asset: string; symbol: string; decimals: number };
  /** The asset is read up to `number` only. Once it is configured again, it is read up to `until`. */
  asset_backfill: { chain: string; asset: string; number: number; until: number | null; since: Date };
  /** A token movement that was observed in a block. */
  observation: {
    chain: string;
    /** Part of the key: a reorg can put the same transaction into another block. */
    block_id: string;
    log_index: number;
    block_number: number;
    tx_hash: string;
    token: string;
    payer: string;
    receiver: string;
    amount: bigint;
    /** The natural key, or any other memo on Solana. */
    authorization_nonce: string | null;
    transfer_id: string | null;
    orphaned: Generated<boolean>;
    /** The movement belongs to no transfer and is booked as an exception. */
    booked: Generated<boolean>;
    /** The row of `dust` that contains the movement; then it is `booked` too. */
    dust_id: Optional<number>;
    observed_at: Date;
    /** The block's time; null if it was not read. */
    moved_at: Optional<Date>;
    /** Recorded apart from the reading of its block, so what one endpoint has shown need not be what another one shows. */
    recorded_late: Generated<boolean>;
  };
  /** A row that could not be booked, and that is skipped until `retry_at`. `subject` is its unique key. */
  failed_booking: {
    id: Generated<number>;
    chain: string;
    kind: FailedKind;
    subject: string;
    /** The place and content of a movement, which has no other row. */
    block_number: number | null;
    movement: Record<string, unknown> | null;
    error: string;
    retries: Generated<number>;
    first_at: Date;
    last_at: Date;
    retry_at: Date;
  };
  /** Unmatched deposits below an asset's dust amount, by UTC day (YYYY-MM-DD). `group_id` is set when the day is booked. */
  dust: {
    id: Generated<number>;
    chain: string;
    asset: string;
    day: string;
    amount: bigint;
    transfers: number;
    last_block: number;
    group_id: number | null;
  };
  /** One row. `id` changes when the database was restored to an earlier time. `count` only grows. */
  database_epoch: {
    singleton: Generated<boolean>;
    id: string;
    count: number;
    counted_at: Date;
    /** The server's identity (system, timeline, table) when this epoch began. */
    identity: string;
    /** When the restore was found; null in the first epoch. */
    began_at: Date | null;
    /** The database may lack commits after this time; null in the first epoch. */
    lost_since: Date | null;
  };
};
