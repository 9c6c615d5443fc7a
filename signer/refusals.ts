/**
 * The reasons why the signer refuses a payout. A transient reason may go away without a person: the payout is asked for
 * again.
 */
export const refusals = {
  paused: { transient: false, message: "the limits file pauses all payouts" },
  limits_invalid: { transient: false, message: "the limits file is missing or invalid" },
  unknown_asset: { transient: false, message: "the signer's networks file or limits file lacks the asset" },
  not_final: { transient: true, message: "a deposit is not final yet" },
  chain_unavailable: { transient: true, message: "the signer's endpoints do not answer" },
  chain_mismatch: { transient: false, message: "the chain does not match the signer's networks file" },
  signer_unavailable: { transient: true, message: "the signer does not answer" },
  deposit_not_found: { transient: false, message: "the chain shows no such deposit" },
  deposit_mismatch: { transient: false, message: "the deposit on chain belongs to another payment, merchant or asset" },
  funds_short: { transient: false, message: "the verified deposits do not cover the payout" },
  destination_unapproved: { transient: false, message: "the receiver is not the merchant's destination" },
  destination_waiting: { transient: false, message: "the merchant's new destination is within its waiting period" },
  receiver_not_payer: { transient: false, message: "the receiver of the refund did not pay" },
  limit_payout: { transient: false, message: "the payout exceeds the limit of one payout" },
  limit_merchant_day: { transient: false, message: "the payout exceeds the merchant's limit of 24 hours" },
  limit_new_merchants_day: {
    transient: false,
    message: "the payout exceeds the limit of 24 hours of all new merchants together",
  },
  limit_asset_hour: { transient: false, message: "the payout exceeds the asset's limit of one hour" },
  treasury_changed: { transient: false, message: "the payout was signed for another treasury" },
  rebuild_unfinished: { transient: false, message: "the signer's records were lost and are not rebuilt yet" },
  treasury_retired: { transient: false, message: "the treasury's records were lost: another treasury has to pay" },
  treasury_unknown: {
    transient: false,
    message:
      "the transaction moves nothing into a treasury that the rebuild knows: was a former treasury not named with `signer rebuild --former`? Believe only your own records of its address",
  },
  payout_unauthorized: { transient: false, message: "a payout of the transaction was not authorized" },
  payout_closed: { transient: false, message: "a payout of the transaction was made, and its marker was closed" },
  fee_payer_unknown: { transient: false, message: "the fee payer is not a relayer of the networks file" },
  nonce_stale: { transient: true, message: "the durable nonce has another value now" },
  marker_unknown: { transient: false, message: "the signer has signed no transaction that made these markers" },
  marker_in_use: {
    transient: true,
    message: "a payout is not final, or one of its transactions could still be included",
  },
  invalid_request: { transient: false, message: "the signer cannot read the payout" },
  withdrawal_failing: { transient: false, message: "the chain would not make the withdrawal now" },
  approval_missing: { transient: false, message: "approvals of two operators are required, none older than a day" },
} as const satisfies Record<string, { transient: boolean; message: string }>;

export type RefusalReason = keyof typeof refusals;
export const refusalReasons = Object.keys(refusals) as [RefusalReason, ...RefusalReason[]];

/** Returns true if the same payout may be signed later without a person's help. */
export function isTransientRefusal(reason: RefusalReason): boolean {
  return refusals[reason].transient;
}
