import type { EventType, PaymentStatus, RefundStatus } from "../api-types.ts";

/** An amount in minor units of its unit. */
export type EventAmount = { readonly unit: string; readonly value: string };

/** Who asked for a change: an API key of the account, or an operator of the service, who has no id here. */
export type EventActor = {
  readonly type: "key" | "operator";
  readonly id?: string | null;
  readonly address?: string | null;
};

/** A payment at the time of an event. A stage that it has not reached is null. */
export type PaymentEventData = {
  readonly payment_id: string;
  readonly merchant_id: string;
  /** False in test mode. Check it before you ship anything. */
  readonly live: boolean;
  /** Grows with each move of the payment: ignore an event whose version is not above the highest you have seen. */
  readonly payment_state_version: number;
  readonly reference_id: string | null;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly status: PaymentStatus;
  readonly amount: EventAmount;
  readonly created_at: string;
  readonly expires_at: string;
  readonly processing: {
    readonly processing_at: string;
    readonly option_amount: EventAmount;
    readonly fee: {
      readonly kind: "fixed" | "percent" | "percent_and_fixed";
      readonly base_amount: EventAmount;
      readonly percent: { readonly numerator: number; readonly denominator: number };
      readonly percent_amount: EventAmount;
      readonly fixed_amount: EventAmount;
      readonly total_amount: EventAmount;
    } | null;
    readonly settlement_amount: EventAmount;
    readonly buyer_caip10: string | null;
    readonly chain_caip2: string;
  } | null;
  readonly success: { readonly succeeded_at: string; readonly tx_id: string } | null;
  readonly failed: { readonly failed_at: string; readonly failure_reason: string | null } | null;
  readonly cancelled: { readonly cancelled_at: string; readonly cancellation_reason: string } | null;
  readonly expired: { readonly expired_at: string } | null;
  readonly settled: { readonly settled_at: string; readonly tx_id: string; readonly amount: EventAmount } | null;
};

/** A refund at the time of an event. */
export type RefundEventData = {
  readonly refund_id: string;
  /** Grows with every move of the refund. */
  readonly refund_state_version: number;
  readonly payment_id: string;
  readonly merchant_id: string;
  readonly live: boolean;
  readonly reference_id: string | null;
  readonly status: RefundStatus;
  readonly reason: "screening" | "receiver_blocked" | "withdrawn" | null;
  readonly amount: EventAmount;
  readonly receiver_caip10: string | null;
  readonly is_record_only: boolean;
  readonly created_at: string;
  readonly held: { readonly held_at: string; readonly reason: string } | null;
  readonly success: { readonly succeeded_at: string; readonly tx_id: string | null } | null;
  readonly failed: { readonly failed_at: string; readonly reason: string } | null;
};

/** A change of a settlement destination at the time of an event. */
export type DestinationEventData = {
  readonly change_id: string;
  readonly merchant_id: string;
  readonly live: boolean;
  readonly settlement_id: string;
  readonly status: "requested" | "approved" | "applied" | "rejected";
  readonly asset: string;
  readonly previous_destination: string | null;
  readonly destination: string | null;
  readonly requested_at: string;
  readonly requested_by: EventActor;
  readonly applies_at: string;
  readonly approved: { readonly approved_at: string; readonly approved_by: EventActor } | null;
  readonly applied: { readonly applied_at: string } | null;
  readonly rejected: {
    readonly rejected_at: string;
    readonly rejected_by: EventActor;
    readonly reason: "decided" | "withdrawn" | "replaced";
  } | null;
};

/** An approval key at the time of an event. */
export type ApprovalKeyEventData = {
  readonly merchant_id: string;
  readonly live: boolean;
  readonly public_key: string;
  readonly status: "registered" | "revoked";
  readonly registered_at: string;
  readonly registered_by: EventActor;
  readonly applies_at: string;
  readonly revoked: { readonly revoked_at: string; readonly revoked_by: EventActor | null } | null;
};

/** A change of another endpoint; a test event has only its first two members. */
export type EndpointEventData = {
  readonly endpoint_id: string;
  readonly live: boolean;
  readonly reason?: string | null;
  readonly changed_by?: EventActor | null;
};

type DataOf<T extends string> = T extends `payment.${string}`
  ? PaymentEventData
  : T extends `refund.${string}`
    ? RefundEventData
    : T extends `destination.${string}`
      ? DestinationEventData
      : T extends `approval_key.${string}`
        ? ApprovalKeyEventData
        : EndpointEventData;

type EventWith<T extends EventType, D> = {
  /** The same at every delivery of the event: remember it to process an event once. */
  readonly id: string;
  readonly type: T;
  readonly api_version: string;
  readonly created_at: string;
  readonly data: D;
};

type EventOf<T extends EventType> = T extends EventType ? EventWith<T, DataOf<T>> : never;

/** What the data of a thin event say: what it is about, whose it is, and its mode. */
type IdOf<D> = D extends RefundEventData
  ? Pick<D, "refund_id" | "merchant_id" | "live">
  : D extends PaymentEventData
    ? Pick<D, "payment_id" | "merchant_id" | "live">
    : D extends DestinationEventData
      ? Pick<D, "change_id" | "merchant_id" | "live">
      : D extends ApprovalKeyEventData
        ? Pick<D, "public_key" | "merchant_id" | "live">
        : Pick<EndpointEventData, "endpoint_id" | "live">;

type ThinEventOf<T extends EventType> = T extends EventType ? EventWith<T, IdOf<DataOf<T>>> : never;

/**
 * An event, whose `type` tells what its `data` is. These are the data of full events; those of thin ones are in
 * `ThinWebhookEvent`. A later version of the service may send other types: ignore those you do not know.
 */
export type WebhookEvent<T extends EventType = EventType> = EventOf<T>;

/** An event of an endpoint or a list with `payload: "thin"`: read the rest with your key. */
export type ThinWebhookEvent<T extends EventType = EventType> = ThinEventOf<T>;
