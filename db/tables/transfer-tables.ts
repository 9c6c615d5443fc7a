import type { Generated } from "kysely";
import type { TransactionState, TransferState } from "../states.ts";
import type { Due, Kind, Lease, NaturalKey, Optional, Purpose } from "./column-types.ts";

export type TransferTables = {
  lane: {
    id: string;
    chain: string;
    address: string;
    next_nonce: number;
    /** The owner must check for ready transfers once more before it releases the lane. */
    wake_requested: Generated<boolean>;
  } & Lease;
  /**
   * `EvmTransactionRow` and `SolanaTransactionRow` say what the columns mean on each chain family. On Solana, gas is measured
   * in compute units at prices in micro-lamports.
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
    /** Solana: the last block height at which the transaction can be included, as one endpoint reported it; null for a durable nonce. */
    last_valid_height: Optional<number>;
    /**
     * EVM: the newest block that was read when it was signed. Solana: a block height that endpoints reported after it was signed;
     * null for a durable nonce, and while two have not reported theirs.
     */
    signed_height: Optional<number>;
    /** Solana: the durable nonce account that the transaction uses, instead of a height. */
    nonce_account: Optional<string>;
    /** Solana: the nonce that the transaction expects in that account, and the slot in which it was read. */
    nonce_value: Optional<string>;
    nonce_slot: Optional<number>;
    state: TransactionState;
    created_at: Date;
    broadcast_at: Date | null;
    block_number: number | null;
    block_id: string | null;
    gas_used: bigint | null;
    gas_price: bigint | null;
    /** The total cost to the lane, smallest unit of the native asset; null until the transaction is in a block. */
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
    authorization_nonce: NaturalKey;
    /** EVM: when the authorization expires, Unix seconds. */
    valid_before: number | null;
    /** Solana: the last block height at which the buyer's transaction can be included; null for a durable nonce. */
    last_valid_height: Optional<number>;
    kind: Generated<Kind>;
    /**
     * Null when a lane has nothing to submit: for a push, and for an authorization that we do not have. On Solana the
     * buyer's signed transaction.
     */
    signature: Buffer | null;
    /** The buyer's EIP-2612 signature that lets Permit2 take the token, where one was needed. */
    permit: Buffer | null;
    /** The payer is a contract, which verifies the signature (ERC-1271). Its transfer is sent alone. */
    smart_wallet: Generated<boolean>;
    /** The hash of such a payer's code; for a wallet that is not deployed yet, the address of its factory. */
    code_hash: Optional<string>;
    state: TransferState;
    lane_id: string | null;
    lane_nonce: number | null;
    /** The next transaction of the transfer has no other transfer. */
    alone: Generated<boolean>;
    hold_until: Date | null;
    retries: Generated<number>;
    last_error: string | null;
    created_at: Date;
  } & Due;
  /** The gas of an included transaction that moved no money for a transfer. */
  burned_gas: {
    transfer_id: string;
    lane_id: string;
    nonce: number;
    chain: string;
    payer: string;
    /** Null for a payer with a plain key. */
    code_hash: string | null;
    /** An equal share of the gas, when the transaction had several transfers. */
    gas: bigint;
    /** The transaction had no other transfer. */
    alone: boolean;
    /** The transaction moved the money; `gas` is what a contract wallet took beyond its share. */
    moved: Generated<boolean>;
    block_number: number;
    at: Date;
  };
};
