import type { ColumnType, Generated } from "kysely";
import type { Listing, ListPlaces, StoredReading } from "./column-types.ts";

export type SolanaTables = {
  /** How far the history of an account has been listed and read. */
  account_cursor: {
    chain: string;
    account: string;
    /** The newest signature of the last complete listing, and its slot; null when there was none. */
    signature: string | null;
    slot: number | null;
    /** A signature of an earlier slot, where the next listing ends, so that it shows `signature` again; null if unknown. */
    until_signature: string | null;
    /** The endpoint that alone has shown both, so that the lists of others do not end there; null when two have shown them. */
    shown_by: string | null;
    /** When that listing began, and the final slot at that time. */
    listed_at: Date | null;
    listed_slot: number | null;
    /** A listing in progress. */
    listing: ColumnType<Listing | null, string | null, string | null>;
    /** Only one endpoint has listed what came after this slot; null when two have. It is listed again when two answer. */
    relist_slot: number | null;
    /** Where that listing continues at each endpoint; null at its start. */
    relist_before: ColumnType<ListPlaces | null, string | null, string | null>;
    /** When the listing up to that slot began; null when it is unknown. */
    relist_at: Date | null;
    /** Everything that was final at this time, and up to this slot, has been read. */
    read_at: Date | null;
    read_slot: number | null;
    /** Every transaction up to this slot has been read whose memo names a payment or payout of ours. */
    urgent_read_slot: number | null;
    owner: string | null;
    lease_until: Date | null;
  };
  /** A transaction in an account's history that is not read yet. */
  history_entry: {
    chain: string;
    account: string;
    signature: string;
    slot: number;
    /** When the listing before the one that found it began; null when there was none. */
    listed_after: Date | null;
    /** The natural keys of payments and payouts of ours that the memo names, and whether there are any: it is read before others. */
    nonces: string[];
    urgent: boolean;
    attempts_made: Generated<number>;
    due_at: Date;
    last_error: string | null;
    /** What one endpoint has shown, while another one has to show the same; null until the entry is read. */
    reading: ColumnType<StoredReading | null, string | null | undefined, string | null>;
  };
  /** An account that a transaction of ours created, for us or for a receiver, and whose rent we paid. */
  created_account: { chain: string; address: string; tx_hash: string; created_at: Date };
  /** An account that makes the chain refuse a second payment of a payout. It holds rent until it is closed. */
  payout_marker: {
    chain: string;
    address: string;
    tx_hash: string;
    /** The slot of that transaction. */
    slot: number;
    lamports: bigint;
    created_at: Date;
    /** The transaction that closes it. */
    closing_hash: Generated<string | null>;
  };
};
