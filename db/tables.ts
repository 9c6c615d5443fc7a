import type { Kysely, Transaction } from "kysely";
import type { AccountTables } from "./tables/account-tables.ts";
import type { ChainTables } from "./tables/chain-tables.ts";
import type { LedgerTables } from "./tables/ledger-tables.ts";
import type { MerchantTables } from "./tables/merchant-tables.ts";
import type { PaymentTables } from "./tables/payment-tables.ts";
import type { PayoutTables } from "./tables/payout-tables.ts";
import type { SolanaTables } from "./tables/solana-tables.ts";
import type { TransferTables } from "./tables/transfer-tables.ts";
import type { WebhookTables } from "./tables/webhook-tables.ts";

export type {
  Allowance,
  FailedKind,
  Kind,
  Listing,
  Mode,
  OptionKind,
  Purpose,
  Verification,
} from "./tables/column-types.ts";

/** Every table by its name; db/migrations creates them. */
export type Tables = AccountTables &
  MerchantTables &
  PaymentTables &
  PayoutTables &
  LedgerTables &
  TransferTables &
  ChainTables &
  SolanaTables &
  WebhookTables;

/**
 * How an attempt is verified. `key`: its signature is the key's at the payer's address, which was checked when the attempt was
 * written. `wallet`: only the payer's code can accept it. `push`: by the transaction that it names.
 */
export type Verification = "key" | "wallet" | "push";

/** A row that owes somebody a job: the sweep rings it again when `due_at` has passed, with `due_try` raised. */
type Due = { due_at: Date | null; due_try: Generated<number> };

/** Where the truth is. Amounts (numeric) are bigint, heights and nonces (bigint) are number, bytea is Buffer. */
/**
 * A listing of an account's history, which goes from the newest signature backwards: the newest one, when it began, the
 * final slot then, and the signature below which it goes on.
 */
export type Listing = { newest: string; slot: number; at: string; final: number; before: string };

export type Tables = {
  account: {
    id: string;
    name: string;
    api_version: Generated<string>;
    /** Wallets and checkout pages may cancel its payments. */
    wallets_cancel: Generated<boolean>;
    created_at: Date;
  };
  api_key: {
    id: string;
    account_id: string;
    mode: Mode;
    hash: Buffer;
    hint: string;
    scopes: ("gateway" | "merchant")[];
    created_at: Date;
    revoked_at: Date | null;
  };
  app_id: { id: string; account_id: string; mode: Mode; created_at: Date; revoked_at: Date | null };
  /** Origins that may frame the data page of an account's payments. */
  frame_origin: { account_id: string; origin: string; created_at: Date };
  merchant: {
    id: string;
    account_id: string;
    mode: Mode;
    name: string;
    email: string;
    status: Generated<"active" | "inactive" | "suspended">;
    logo_id: string | null;
    /** Since when an operator lets nothing be paid out to it. */
    payouts_held_at: Date | null;
    created_at: Date;
    deleted_at: Date | null;
  };
  /** `id` is the SHA-256 of the bytes, in hex. */
  logo: { id: string; content_type: string; bytes: Buffer; width: number; height: number; created_at: Date };
  /** `status` and `answer` are null only inside the transaction that does the work. */
  idempotency: {
    account_id: string;
    mode: Mode;
    operation: string;
    key: string;
    digest: Buffer;
    status: number | null;
    answer: string | null;
    created_at: Date;
  };
  settlement_destination: {
    id: string;
    merchant_id: string;
    asset: string;
    destination: string;
    /** A payout gathers what comes within so long, milliseconds; null pays each payment out at once. */
    gather_ms: number | null;
    /** It is paid out before that time when it has come to so much, minor units. */
    gather_amount: bigint | null;
    /** And not before it has come to so much, minor units. */
    minimum: bigint | null;
    /** Payments in other assets of the same currency are taken, and owed in this one. */
    takes_others: Generated<boolean>;
    /** Buyers pay the destination itself, where the asset lets them. */
    direct: Generated<boolean>;
    created_at: Date;
    updated_at: Date;
  };
  /** Where merchants are paid, and were before; written by a trigger. */
  destination_change: {
    id: Generated<number>;
    merchant_id: string;
    destination_id: string;
    asset: string;
    before: string | null;
    after: string | null;
    at: Date;
  };
  /** What the operator takes of an account's payments, or of one merchant's instead. */
  fee_policy: {
    account_id: string;
    merchant_id: string | null;
    /** Hundredths of a percent. */
    points: number;
    /** Millionths of a unit of the asset. */
    fixed_micros: bigint;
    updated_at: Date;
  };
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
  payment: {
    id: string;
    account_id: string;
    merchant_id: string;
    mode: Mode;
    reference_id: string | null;
    unit: string;
    value: bigint;
    state: PaymentState;
    state_version: Generated<number>;
    failure_code: "declined_user" | null;
    checkout: ColumnType<{ successUrl: string; errorUrl: string } | null, string | null>;
    tx_id: string | null;
    paid_asset: string | null;
    paid_amount: bigint | null;
    /** Of the paid amount, what the operator has taken. */
    fee: Generated<bigint>;
    /** What its merchant is owed for it, where that is another asset than the one it was paid in. */
    owed_asset: string | null;
    owed_amount: bigint | null;
    /** Its buyer has paid the merchant's destination itself. */
    direct: Generated<boolean>;
    settlement_id: string | null;
    /** The option of the verified attempt. */
    option_id: string | null;
    cancelled_reason: "cancelled_by_user" | "cancelled_by_merchant" | null;
    /** The wallet instance or checkout session that requested its options first, and whether another one has. */
    requester: ColumnType<string | null, string | null | undefined>;
    shared: Generated<boolean>;
    created_at: Date;
    updated_at: Date;
    expires_at: Date;
  } & Due;
  /** Money sent back: to a payment's payer (`payment_id`), or where money that belongs to nobody came from (`exception_id`). */
  refund: {
    id: string;
    payment_id: string | null;
    /** The how-manieth of its payment; part of the natural key of its transfer. */
    number: number;
    /** The ledger group in which it was booked as nobody's. */
    exception_id: number | null;
    /** Whose balance it is drawn on; null for money that belongs to nobody. */
    merchant_id: string | null;
    asset: string;
    amount: bigint;
    /** What it takes of its merchant's balance, where that is in another asset. */
    owed_asset: string | null;
    owed_amount: bigint | null;
    /** An address on the asset's chain; null for a payment without a payer (test mode). */
    receiver: string | null;
    state: RefundState;
    created_at: Date;
    paid_at: Date | null;
  } & Due;
  /** Null members do not narrow: any asset, any amount. */
  collection_policy: {
    id: string;
    merchant_id: string;
    asset: string | null;
    unit: string | null;
    minimum: bigint | null;
    created_at: Date;
  };
  /**
   * What a buyer said for a payment: sealed, and deleted at `delete_at`. Posted ahead of a confirm by a requester of
   * options, or part of an attempt; an attempt whose signature was verified makes it final, and then it is kept longer.
   */
  collected_data: {
    id: string;
    payment_id: string;
    account: string;
    /** Who posted it; empty where the attempt's signature says whose it is. */
    requester: string;
    attempt_id: string | null;
    key_id: string;
    sealed: Buffer;
    created_at: Date;
    delete_at: Date;
    /** Until when it is kept once it belongs to a verified attempt. */
    keep_until: Date;
  };
  /** Where an account hears of its payments; secrets are sealed. */
  webhook_endpoint: {
    id: string;
    account_id: string;
    mode: Mode;
    url: string;
    key_id: string;
    secret: Buffer;
    previous_key_id: string | null;
    previous_secret: Buffer | null;
    previous_until: Date | null;
    /** Who is delivering to it now. */
    owner: string | null;
    /** Until when somebody delivers to it (`owner`), or has been rung to do so. */
    busy_until: Date | null;
    /** How often somebody has been rung for it. */
    due_try: Generated<number>;
    created_at: Date;
    deleted_at: Date | null;
  };
  /** One event that one endpoint is to be told of; written by triggers with the state change itself. */
  webhook_delivery: {
    id: string;
    endpoint_id: string;
    payment_id: string;
    type: string;
    state_version: number;
    at: Date;
    state: Generated<"pending" | "delivered" | "given_up">;
    tries: Generated<number>;
    last_outcome: string | null;
    delivered_at: Date | null;
    /** When the next attempt is due; null unless pending. */
    due_at: Date | null;
  };
  /** Payments of a paid settlement whose endpoint is still owed their event: those with an id above `after_payment`. */
  webhook_fanout: { settlement_id: string; endpoint_id: string; at: Date; after_payment: Generated<string> };
  /**
   * A quote: one way to pay a payment, as it was shown to a buyer. A row never changes (a trigger sees to it), but for
   * `blockhash_until`; a quote that is renewed is a new row with an id of its own.
   */
  payment_option: {
    id: string;
    payment_id: string;
    /** Counts the quotes of one payment, payer and asset. */
    number: Generated<number>;
    account: string;
    chain: string;
    asset: string;
    token: string;
    payer: string;
    receiver: string;
    amount: bigint;
    authorization_nonce: string;
    /** Unix seconds. On Solana 0: there the blockhash that the wallet signs says when. */
    valid_before: number;
    /** A policy asked for data of its buyer when it was made. */
    needs_data: Generated<boolean>;
    /** What the operator takes of the amount, minor units of the asset; `fee_fixed` of it whatever the amount is. */
    fee: Generated<bigint>;
    fee_fixed: Generated<bigint>;
    /** Hundredths of a percent, by which the rest was reckoned. */
    fee_points: Generated<number>;
    /** `receiver` is the merchant's destination, and not our treasury. */
    direct: Generated<boolean>;
    /** What a price feed said, where the amount is at a price, and until when the quote holds; null for the payment's life. */
    rate: string | null;
    quoted_until: Date | null;
    /** What the merchant is owed for it, less the fee, where that is another asset. */
    owed_asset: string | null;
    owed_amount: bigint | null;
    kind: Generated<OptionKind>;
    /** What the buyer still has to allow before the transfer can be made; null when nothing. */
    allowance: ColumnType<Allowance | null, string | null | undefined>;
    /** Solana: when the blockhash is about to end that was handed out last. Not part of the quote. */
    blockhash_until: ColumnType<Date | null, Date | null | undefined>;
    created_at: Date;
  };
  attempt: {
    id: string;
    payment_id: string;
    option_id: string;
    /** Of its option and its payment; written by a trigger. */
    chain: Generated<string>;
    merchant_id: Generated<string>;
    digest: Buffer;
    results: unknown;
    /** Who can say whether it is the payer's. */
    verification: Generated<Verification>;
    state: AttemptState;
    refusal: string | null;
    created_at: Date;
  } & Due;
  lane: {
    id: string;
    chain: string;
    address: string;
    next_nonce: number;
    fence: Generated<number>;
    owner: string | null;
    lease_until: Date | null;
    rung: Generated<boolean>;
  };
  /**
   * On Solana `nonce` counts a lane's transactions, `hash` is the first signature, gas are compute units, their prices
   * micro-lamports, and a block is a slot, which has no hash.
   */
  transaction: {
    lane_id: string;
    nonce: number;
    replacement: Generated<number>;
    chain: string;
    hash: string;
    bytes: Buffer;
    gas_limit: bigint;
    max_fee_per_gas: bigint;
    max_priority_fee_per_gas: bigint;
    /** Solana: the block height after which the bytes can no longer land. */
    last_valid_height: ColumnType<number | null, number | null | undefined>;
    /** Solana: the durable nonce account that the bytes use up, instead of a height, the nonce they expect there, and in which slot it was seen. */
    nonce_account: ColumnType<string | null, string | null | undefined>;
    nonce_value: ColumnType<string | null, string | null | undefined>;
    nonce_slot: ColumnType<number | null, number | null | undefined>;
    state: TransactionState;
    created_at: Date;
    offered_at: Date | null;
    block_number: number | null;
    block_hash: string | null;
    gas_used: bigint | null;
    gas_price: bigint | null;
    /** What it cost the lane in all, the smallest unit of the native asset; null until it is in a block. */
    fee: bigint | null;
    reverted: boolean | null;
  };
  transfer: {
    id: string;
    purpose: Purpose;
    payment_id: string | null;
    settlement_id: string | null;
    refund_id: string | null;
    chain: string;
    asset: string;
    token: string;
    payer: string;
    receiver: string;
    amount: bigint;
    authorization_nonce: string;
    /** Unix seconds; on Solana a block height. */
    valid_before: number;
    kind: Generated<Kind>;
    /**
     * Null where there is nothing for a lane to submit: a push, or an authorization that we have not been given. On
     * Solana the buyer's signed transaction.
     */
    signature: Buffer | null;
    /** The buyer's EIP-2612 signature that lets Permit2 take the token, where one was needed. */
    permit: Buffer | null;
    /** The payer is code, which judges the signature (ERC-1271) and goes alone. */
    smart_wallet: Generated<boolean>;
    /** What the code of such a payer hashes to; of a wallet that is not deployed yet, the address of its factory. */
    code_hash: ColumnType<string | null, string | null | undefined>;
    state: TransferState;
    lane_id: string | null;
    lane_nonce: number | null;
    alone: Generated<boolean>;
    hold_until: Date | null;
    troubles: Generated<number>;
    last_trouble: string | null;
    created_at: Date;
  } & Due;
  /** A transaction that was included and moved no money for a transfer. */
  burned_gas: {
    transfer_id: string;
    lane_id: string;
    nonce: number;
    chain: string;
    payer: string;
    /** Null for a plain key. */
    code_hash: string | null;
    /** Of a transaction that carried several transfers, an equal share. */
    gas: bigint;
    /** The transaction carried nothing else. */
    alone: boolean;
    block_number: number;
    at: Date;
  };
  chain_cursor: {
    chain: string;
    number: number;
    hash: string;
    final_number: number;
    reached_head_at: Date | null;
    /** The chain's own time up to which everything has been read: of the cursor's block, on Solana of a final slot. */
    chain_time: ColumnType<Date | null, Date | null | undefined>;
    /** The assets of which everything up to the cursor has been read. */
    assets: Generated<string[]>;
    /** When its books are compared with it again. */
    reconcile_at: Generated<Date>;
    fence: Generated<number>;
    owner: string | null;
    lease_until: Date | null;
    /** The database's epoch in which the chain was read again, and the height up to which it still has to be. */
    epoch: Generated<string | null>;
    epoch_height: Generated<number | null>;
  } & Due;
  /** Solana: how far the history of an account has been listed and read. */
  account_cursor: {
    chain: string;
    account: string;
    /** The newest signature of the last complete listing, and its slot; null when there was none. */
    signature: string | null;
    slot: number | null;
    /** When that listing began, and the final slot then. */
    listed_at: Date | null;
    listed_slot: number | null;
    /** A listing under way. */
    listing: Listing | null;
    /** Everything that was final at this time, and up to this slot, has been read. */
    read_at: Date | null;
    read_slot: number | null;
    /** Up to this slot everything has been read whose memo names something of ours. */
    named_slot: number | null;
    /** The one reader of the account, until its lease ends. */
    owner: string | null;
    lease_until: Date | null;
  };
  /** Solana: a transaction that names an account of ours and is not read yet. */
  history_entry: {
    chain: string;
    account: string;
    signature: string;
    slot: number;
    /** When the listing before the one that found it began; null when there was none. */
    listed_after: Date | null;
    /** Its memo names something of ours: it is read before the others. */
    urgent: boolean;
    tries: Generated<number>;
    due_at: Date;
    last_error: string | null;
  };
  /** Solana: an account that a transaction of ours has made, for us or for a receiver, and paid the rent of. */
  made_account: { chain: string; address: string; tx_hash: string; made_at: Date };
  /** Solana: an account that refuses a second payout, and holds so much rent until it is closed. */
  payout_marker: {
    chain: string;
    address: string;
    tx_hash: string;
    lamports: bigint;
    made_at: Date;
    /** The transaction that is to close it. */
    closing_hash: Generated<string | null>;
  };
  /** One row. A new `id` begins when the database has stepped back in time; `count` only ever grows. */
  database_epoch: {
    singleton: Generated<boolean>;
    id: string;
    count: number;
    counted_at: Date;
    /** What the server said of itself (system, timeline, table) when this epoch began. */
    identity: string;
    /** When it was found to have stepped back; null in the first epoch. */
    began_at: Date | null;
  };
  /** Of an asset only final blocks up to `number` have been read; since it is configured again it is read up to `until`. */
  unread_asset: { chain: string; asset: string; number: number; until: number | null; since: Date };
  chain_block: {
    chain: string;
    number: number;
    hash: string;
    parent_hash: string;
    base_fee: bigint;
    at: Date;
    /** The endpoint that was believed for it, and for those below it that are not remembered. */
    read_by: string | null;
  };
  sighting: {
    chain: string;
    /** On Solana the slot, as a text. */
    block_hash: string;
    log_index: number;
    block_number: number;
    tx_hash: string;
    token: string;
    payer: string;
    receiver: string;
    amount: bigint;
    authorization_nonce: string | null;
    transfer_id: string | null;
    orphaned: Generated<boolean>;
    /** Belongs to no transfer, and is in the books as an exception. */
    booked: Generated<boolean>;
    /** The day's small deposits it is one of; then `booked` too. */
    dust_id: ColumnType<number | null, number | null | undefined>;
    seen_at: Date;
  };
  /** A row that could not be booked; it is left out until `retry_at`. `subject` is its natural key. */
  failed_booking: {
    id: Generated<number>;
    chain: string;
    kind: FailedKind;
    subject: string;
    /** Of a movement, which has no row of its own: where it stands, and what it is. */
    block_number: number | null;
    movement: Record<string, unknown> | null;
    error: string;
    retries: Generated<number>;
    first_at: Date;
    last_at: Date;
    retry_at: Date;
  };
  /** Unmatched deposits below the dust amount of an asset, by UTC day (YYYY-MM-DD); `group_id` when that is booked. */
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
  settlement: {
    id: string;
    merchant_id: string;
    mode: Mode;
    asset: string;
    number: number;
    amount: bigint;
    destination: string | null;
    state: SettlementState;
    created_at: Date;
    /** When it stopped gathering; from then on its payout is owed. */
    closed_at: Date | null;
    /** Some of it came in another asset: it is paid out of the treasury's stock of this one. */
    converted: Generated<boolean>;
    /** Of one that a buyer has paid directly; a payout's is in the books. */
    tx_hash: string | null;
    paid_at: Date | null;
  } & Due;
  /** What a refund has taken of a payment's part of a settlement before that began, minor units of its asset. */
  settlement_deduction: { refund_id: string; settlement_id: string; payment_id: string; amount: bigint };
  /**
   * Payouts of one kind that wait A connection pool or an open transaction. The caller owns the transaction. */
export type Db = Kysely<Tables> | Transaction<Tables>;
/** The pool, for functions that open a transaction of their own. */
export type Pool = Kysely<Tables>;
