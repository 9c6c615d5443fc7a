/**
 * Rows that contradict each other. The names say what is wrong:
 * - `balance_differs`: a merchant's balance is not what the ledger owes the merchant (`subject`).
 * - `payable_negative`: the ledger owes a merchant less than nothing.
 * - `settlements_differ`: the settlements that have not begun do not add up to the merchant's balance.
 * - `group_unbalanced`: the entries of a ledger group do not sum to zero.
 * - `day_differs`: the sum of an account's day is not that of its entries.
 * - `settlement_without_payments`, `settlement_differs`: a settlement's amount does not follow from its payments.
 * - `settlement_unbooked`: the ledger has booked another amount for a settlement that has begun.
 * - `settlement_without_transfer`, `refund_without_transfer`: it has begun, and no transfer pays it.
 * - `refund_unbooked`, `refund_receiver_differs`, `refunds_exceed_payment`: a refund that was not booked, does not go back
 *   to the payer, or exceeds its payment together with the payment's other refunds.
 * - `transfer_without_purpose`: a transfer pays a settlement or refund that has not begun.
 * - `transfer_differs`, `transfer_receiver_differs`: it has another amount, asset or receiver than what it pays.
 */
export const findingKinds = [
  "balance_differs",
  "payable_negative",
  "settlements_differ",
  "group_unbalanced",
  "day_differs",
  "settlement_without_payments",
  "settlement_differs",
  "settlement_unbooked",
  "settlement_without_transfer",
  "refund_unbooked",
  "refund_without_transfer",
  "refund_receiver_differs",
  "refunds_exceed_payment",
  "transfer_without_purpose",
  "transfer_differs",
  "transfer_receiver_differs",
] as const;

type FindingKind = (typeof findingKinds)[number];

/** One contradiction. `found` and `expected` are amounts in minor units, or addresses. */
export type Finding = {
  kind: FindingKind;
  /** The id of the merchant, settlement, refund, payment or transfer, or the name of the group or day. */
  subject: string;
  asset: string;
  found: string | null;
  expected: string | null;
};
