import type { PaymentTables } from "../tables/payment-tables.ts";
import { append, type GrantsOf, ofWorkers, read, readers, writeAndDelete } from "./privileges.ts";

/** The columns of an attempt that people may read: not what the wallet has signed. */
const readableAttempt = [
  "id",
  "payment_id",
  "option_id",
  "chain",
  "merchant_id",
  "verification",
  "state",
  "refusal",
  "created_at",
] as const;

/** The columns of a payment that the operator console shows: nothing that merchants write about their buyers. */
const shownPayment = [
  "id",
  "account_id",
  "merchant_id",
  "mode",
  "reference_id",
  "unit",
  "value",
  "state",
  "failure_code",
  "cancelled_reason",
  "option_id",
  "asset",
  "tx_id",
  "sent_by_others",
  "paid_asset",
  "paid_amount",
  "fee",
  "settlement_id",
  "created_at",
  "updated_at",
  "expires_at",
  "due_at",
] as const;

export const paymentGrants: GrantsOf<PaymentTables> = {
  payment: {
    ...readers,
    api: {
      select: "all",
      insert: [
        "id",
        "account_id",
        "merchant_id",
        "mode",
        "reference_id",
        "description",
        "metadata",
        "unit",
        "value",
        "state",
        "checkout",
        "created_at",
        "updated_at",
        "expires_at",
        "due_at",
      ],
      update: [
        "state",
        "state_version",
        "updated_at",
        "due_at",
        "failure_code",
        "cancelled_reason",
        "requester",
        "has_other_requesters",
      ],
    },
    worker: { select: "all", update: "all" },
    board: { select: shownPayment },
    admin: { select: "all", update: ["settlement_id", "due_at", "due_retries"] },
  },
  // A trigger inserts the rows.
  ended_payment: { ...readers, worker: { select: "all", delete: true } },
  summed_owner: ofWorkers,
  summed_kind: { ...readers, worker: append },
  summed_payment: { ...readers, worker: append },
  payment_sum: ofWorkers,
  customer: { ...readers, worker: append },
  customer_set: ofWorkers,
  payment_option: {
    ...readers,
    api: { ...append, update: ["blockhash_until"] },
    worker: { select: "all", update: ["blockhash_until"], delete: true },
    board: read,
  },
  attempt: {
    api: { ...append, update: ["state", "refusal", "due_at", "due_retries"], delete: true },
    worker: writeAndDelete,
    admin: { select: "all", update: ["due_at", "due_retries"] },
    board: { select: [...readableAttempt, "due_at"] },
    reader: { select: readableAttempt },
  },
  collected_data: {
    api: writeAndDelete,
    worker: { select: "all", update: "all", delete: true },
    admin: { select: "all", update: ["key_id", "ciphertext"], delete: true },
    reader: {
      select: ["id", "payment_id", "account", "attempt_id", "key_id", "created_at", "delete_at", "keep_until"],
    },
  },
};
