import type { ColumnType, Generated } from "kysely";
import type { DestinationChangeState } from "../states.ts";
import type { ActorKind, DestinationRejection, Mode } from "./column-types.ts";

export type MerchantTables = {
  merchant: {
    id: string;
    account_id: string;
    mode: Mode;
    name: string;
    email: string;
    status: Generated<"active" | "inactive" | "suspended">;
    /** The URL that the logo was fetched from, as the merchant gave it. */
    icon_url: string | null;
    /** Our copy of the logo. */
    logo_id: string | null;
    /** Since when an operator holds the merchant's payouts. */
    payouts_held_at: Date | null;
    created_at: Date;
    deleted_at: Date | null;
  };
  /** `id` is the SHA-256 of the bytes, in hex. */
  logo: { id: string; content_type: string; bytes: Buffer; width: number; height: number; created_at: Date };
  settlement_destination: {
    id: string;
    merchant_id: string;
    asset: string;
    /** The asset as the merchant spelled it; null where that is `asset`. */
    given_asset: Generated<string | null>;
    destination: string;
    /** How long a payout accumulates, milliseconds; null pays out each payment at once. */
    accumulation_ms: number | null;
    /** The amount at which an accumulating payout is paid before that time, minor units. */
    accumulation_amount: bigint | null;
    /** The minimum amount of a payout, minor units. */
    minimum: bigint | null;
    /** Payments in other assets of the same currency are accepted, and owed in this asset. */
    accepts_other_assets: Generated<boolean>;
    /** Buyers pay the destination itself, where the asset allows it. */
    direct: Generated<boolean>;
    created_at: Date;
    updated_at: Date;
  };
  /**
   * Every request to add, change or delete a destination. `settlement_destination` holds the result of the applied ones.
   * The actors are the key or operator that made the request or decided it, and the address that it came from.
   */
  destination_change: {
    id: string;
    number: Generated<number>;
    merchant_id: string;
    destination_id: string;
    asset: string;
    /** The asset as the merchant spelled it; null where that is `asset`. */
    given_asset: Generated<string | null>;
    /** The account before the change; null for an added destination. */
    before: string | null;
    /** The account after the change; null for a deleted destination. */
    after: string | null;
    state: DestinationChangeState;
    requester_kind: ActorKind;
    requester_id: string;
    requester_address: string | null;
    created_at: Date;
    /** When the change applies unless it is approved or rejected before. */
    applies_at: Date;
    decider_kind: ActorKind | null;
    decider_id: string | null;
    decider_address: string | null;
    decided_at: Date | null;
    /** Why a rejected change was rejected. */
    rejection: DestinationRejection | null;
    applied_at: Date | null;
    /** When a worker reported the change to the signer. A trigger sets it to null when the change is rejected. */
    reported_at: ColumnType<Date | null, never, Date | null>;
  };
  /** A statement that an operator or a merchant has signed, for the signer. `subject`: the change or the refund. */
  signed_statement: {
    id: Generated<number>;
    subject: string;
    text: string;
    signer: string;
    signature: string;
    created_at: Date;
    reported_at: Date | null;
    /** What the signer said about it. */
    outcome: string | null;
  };
  /** An Ed25519 public key, in hex, by which a merchant approves changes of its destinations. */
  approval_key: {
    merchant_id: string;
    public_key: string;
    registrar_kind: ActorKind;
    registrar_id: string;
    registrar_address: string | null;
    created_at: Date;
    /** When it counts in the service; the signer waits by its own clock. */
    applies_at: Date;
    /** A revoked key stays revoked. */
    revoked_at: Date | null;
    revoker_kind: ActorKind | null;
    revoker_id: string | null;
    revoker_address: string | null;
    /** When the signer received the key as it is now. */
    reported_at: Date | null;
  };
  /** The operator's fee on an account's payments, or on the payments of one merchant instead. */
  fee_policy: {
    account_id: string;
    merchant_id: string | null;
    /** Hundredths of a percent. */
    basis_points: number;
    /** Millionths of a unit of the asset. */
    fixed_micros: bigint;
    updated_at: Date;
  };
  /** A null member does not narrow: any asset, any amount. */
  collection_policy: {
    id: string;
    merchant_id: string;
    asset: string | null;
    unit: string | null;
    minimum: bigint | null;
    created_at: Date;
  };
};
