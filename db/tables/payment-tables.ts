import type { ColumnType, Generated } from "kysely";
import type { AttemptState, PaymentState } from "../states.ts";
import type { Allowance, Due, Mode, NaturalKey, Optional, OptionKind, Verification } from "./column-types.ts";

export type PaymentTables = {
  payment: {
    id: string;
    account_id: string;
    merchant_id: string;
    mode: Mode;
    reference_id: string | null;
    description: Optional<string>;
    /** The merchant's own values by their own names. */
    metadata: ColumnType<Record<string, string> | null, string | null | undefined, never>;
    unit: string;
    value: bigint;
    state: PaymentState;
    state_version: Generated<number>;
    failure_code: "declined_user" | null;
    checkout: ColumnType<{ successUrl: string; errorUrl: string } | null, string | null>;
    tx_id: string | null;
    /** The buyer or another relayer has sent the transaction `tx_id`, not one of our lanes. */
    sent_by_others: Generated<boolean>;
    paid_asset: string | null;
    paid_amount: bigint | null;
    /** The operator's fee, part of the paid amount. */
    fee: Generated<bigint>;
    /** What the merchant is owed, when that is in another asset than the payment. */
    owed_asset: string | null;
    owed_amount: bigint | null;
    /** The buyer paid the merchant's destination itself. */
    direct: Generated<boolean>;
    settlement_id: string | null;
    /** The option of the verified attempt. */
    option_id: string | null;
    /** The asset of that option, or of a simulated payment (CAIP-19). */
    asset: Optional<string>;
    cancelled_reason: "cancelled_by_user" | "cancelled_by_merchant" | null;
    /** The wallet instance or checkout session that requested options first. */
    requester: Optional<string>;
    /** Another wallet instance or checkout session has requested options too. */
    has_other_requesters: Generated<boolean>;
    created_at: Date;
    updated_at: Date;
    expires_at: Date;
  } & Due;
  /**
   * A quote: one way to pay a payment, as the buyer saw it. A row never changes, which a trigger enforces, except for
   * `blockhash_until`. A renewed quote is a new row with an id of its own.
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
    authorization_nonce: NaturalKey;
    /** When the authorization expires, Unix seconds. Null on Solana: there, the blockhash of the signed transaction expires. */
    valid_before: number | null;
    /** A policy required data of the buyer when the quote was made. */
    needs_data: Generated<boolean>;
    /** The operator's fee, part of the amount, minor units. */
    fee: Generated<bigint>;
    /** The fixed part of the fee. */
    fee_fixed: Generated<bigint>;
    /** The rate of the rest of the fee, hundredths of a percent. */
    fee_basis_points: Generated<number>;
    /** `receiver` is the merchant's destination, not our treasury. */
    direct: Generated<boolean>;
    /** The rate of the price feed, when the amount is converted. */
    rate: string | null;
    /** Until when a quote with a rate is valid; null for a quote that is valid as long as its payment. */
    quoted_until: Date | null;
    /** What the merchant is owed after the fee, when that is in another asset. */
    owed_asset: string | null;
    owed_amount: bigint | null;
    kind: Generated<OptionKind>;
    /** What the buyer must allow before the transfer can be made; null when nothing. */
    allowance: ColumnType<Allowance | null, string | null | undefined>;
    /** Solana: when the most recently returned blockhash expires. Not part of the quote. */
    blockhash_until: Optional<Date>;
    created_at: Date;
  };
  /** Payments that have ended and are not in the sums yet. */
  ended_payment: { account_id: string; mode: Mode; payment_id: string };
  /** Whose payments have been summed: those of a merchant, or of all merchants of an account (`merchant_id` is empty). */
  summed_owner: {
    id: Generated<number>;
    account_id: string;
    mode: Mode;
    merchant_id: string;
    customers: Generated<number>;
    sets_before: Generated<Date>;
  };
  /** What an account's payments are added up by. The asset is empty when no buyer has begun to pay. */
  summed_kind: { id: Generated<number>; owner: number; state: PaymentState; asset: string; unit: string };
  /** Payments that have ended, by the UTC day, month and year of their creation. */
  payment_sum: {
    owner: number;
    span: "day" | "month" | "year";
    starts_on: Date;
    kind: number;
    count: number;
    value: bigint;
  };
  /** The payments of a merchant and day that were added to the sums together, each as one place of every array. */
  summed_payment: {
    owner: number;
    day: Date;
    number: Generated<number>;
    kinds: number[];
    times: Date[];
    amounts: bigint[];
    customers: (number | null)[];
    texts: string | null;
  };
  /** The payers of succeeded payments of an account, numbered from 0. */
  customer: { owner: number; payer: string; number: number };
  /** The customers of a day, month or year, of which one bit stands for each. */
  customer_set: {
    owner: number;
    span: "day" | "month" | "year";
    starts_on: Date;
    asset: string;
    chunk: number;
    bits: string;
  };
  attempt: {
    id: string;
    payment_id: string;
    option_id: string;
    /** The chain of the option and the merchant of the payment. */
    chain: string;
    merchant_id: string;
    digest: Buffer;
    results: unknown;
    /** The span of the confirm's request; null when its trace is not sampled. */
    traceparent: Optional<string>;
    verification: Generated<Verification>;
    state: AttemptState;
    refusal: string | null;
    created_at: Date;
  } & Due;
  /**
   * Encrypted personal data of a buyer, deleted at `delete_at`. A requester of options posts it before a confirm, or an
   * attempt carries it. The data of a verified attempt is kept longer.
   */
  collected_data: {
    id: string;
    payment_id: string;
    account: string;
    /** Empty when the attempt's signature proves the owner of the data. */
    requester: string;
    attempt_id: string | null;
    key_id: string;
    ciphertext: Buffer;
    created_at: Date;
    delete_at: Date;
    /** Until when the data is kept once its attempt is verified. */
    keep_until: Date;
  };
};
