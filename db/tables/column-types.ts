import type { ColumnType, Generated } from "kysely";

// Amounts (numeric) are bigint, heights and nonces (bigint) are number, bytea is Buffer: see db/open.ts.

// Addresses and transaction hashes have the form of their chain: hex in lower case on EVM chains, base58 on Solana.

/** The natural key of a payment, payout or refund, in hex on every chain. */
export type NaturalKey = ColumnType<`0x${string}`, string, string>;

/** A nullable column that an insert may leave out. */
export type Optional<T> = ColumnType<T | null, T | null | undefined, T | null>;

/** Columns of a row that waits for a job. The sweep enqueues the job when `due_at` has passed, and increments `due_retries`. */
export type Due = { due_at: Date | null; due_retries: Generated<number> };

/** A lease with a fencing token. */
export type Lease = { fence: Generated<number>; owner: string | null; lease_until: Date | null };

export type Mode = "test" | "live";
/** Who made a change: an API key, an operator or a worker. */
export type ActorKind = "key" | "operator" | "worker";
/**
 * Why a requested change of a destination was rejected: a decision, a request for the destination that applies, or a
 * later request or deletion.
 */
export type DestinationRejection = "decided" | "withdrawn" | "replaced";
export type Purpose = "payment" | "settlement" | "refund" | "cold";

/**
 * How a token movement is made:
 * - `eip3009`: an EIP-3009 authorization, which any relayer may submit.
 * - `permit2`: a Permit2 signature for our Collector.
 * - `disburse`: a payout through our Disburser, signed by the treasury.
 * - `push`: the payer's own transaction, with the natural key after its call data.
 * - `spl`: a transaction on Solana that the payer signs and a lane pays for, with the natural key as its memo.
 */
export type Kind = "eip3009" | "permit2" | "disburse" | "push" | "spl";
/** How a buyer pays. */
export type OptionKind = Exclude<Kind, "disburse">;
/** How a buyer lets Permit2 take a token: by a signed EIP-2612 permit with this nonce, or by approve transactions. */
export type Allowance = { by: "permit"; nonce: string } | { by: "approve"; zeroAllowanceFirst: boolean };

/**
 * How an attempt is verified:
 * - `key`: its signature is by the key of the payer's address, which was checked when the attempt was inserted.
 * - `wallet`: only the payer's contract can verify it.
 * - `push`: by the transaction that it names.
 */
export type Verification = "key" | "wallet" | "push";

/**
 * What could not be booked:
 * - `movement`: a movement that was read and could not be recorded.
 * - `unmatched`: a movement that belongs to no transfer.
 * - `dust`: a day's dust.
 * - `transfer`: an included transfer that is to be confirmed.
 * - `ended`: a transfer that can no longer happen.
 * - `transaction`: the cost of one of our transactions.
 */
export type FailedKind = "movement" | "unmatched" | "dust" | "transfer" | "ended" | "transaction";

/** Where the listing of an account continues at each endpoint (by its name): before a signature, which has this slot; null at its end. */
export type ListPlaces = { readonly [endpoint: string]: { before: string; slot: number } | null };

/**
 * A listing of an account's history, from the newest signature backwards: the newest final signature and its slot, the newest
 * one of an earlier slot, the endpoint that alone has shown them (null when two have), when the listing began, the final slot at that
 * time, and where it continues.
 */
export type Listing = {
  newest: { signature: string; slot: number } | null;
  until: string | null;
  by: string | null;
  at: string;
  final: number;
  places: ListPlaces;
};

/** What endpoint `by` shows of a transaction: a digest of its movements, or null where nothing has moved. */
export type StoredReading = { by: string; digest: string | null };
