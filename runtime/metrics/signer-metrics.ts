import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of the signer's process, and of what workers report to it. */
export const createSignerMetrics = ({ counter, gauge, histogram, systemGauge }: MetricFactory) => ({
  signerPayouts: counter("pay_signer_payouts_total", "Payouts that the signer has authorized and signed", ["kind"]),
  signerRefusals: counter("pay_signer_refusals_total", "Payouts that the signer has refused, by reason", ["reason"]),
  signerShortAgeSeconds: gauge(
    "pay_signer_funds_short_age_seconds",
    "Time since the oldest payout that the signer has refused as funds_short, and not signed since, was first refused",
  ),
  signerDeposits: counter("pay_signer_deposits_total", "Deposits that the signer was asked to verify, by result", [
    "result",
  ]),
  signerLoneAgeSeconds: gauge(
    "pay_signer_lone_deposit_age_seconds",
    "Age of the oldest deposit that one endpoint has shown to the signer and no second one; 0 when there is none",
  ),
  signerRequestSeconds: histogram(
    "pay_signer_request_seconds",
    "Time in which the signer answered a request",
    ["path"],
    [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  ),
  signerFirstDestinations: counter(
    "pay_signer_first_destinations_total",
    "First destinations of new merchants, which apply without the signer's waiting period",
  ),
  signerDestinationsWaiting: gauge(
    "pay_signer_destinations_waiting",
    "Destinations that wait for the signer's own waiting period or a signed approval, by the last digits of their claims",
    ["claim"],
  ),
  signerApprovalKeysWaiting: gauge(
    "pay_signer_approval_keys_waiting",
    "Approval keys that were reported within the signer's waiting period and do not count yet, by the last digits of their claims",
    ["claim"],
  ),
  signerUnreportedSeconds: systemGauge(
    "pay_signer_unreported_age_seconds",
    "Time since the oldest change of a destination, approval key or signed decision that workers have not reported to the signer; 0 when they have reported all",
  ),
  signerClaimsHeld: gauge(
    "pay_signer_claims_held",
    "Destinations and approval keys whose time came while the signer was stopped, within the hour after its start",
  ),
  signerStoreRows: gauge(
    "pay_signer_store_rows",
    "Rows of the signer's store, which never become fewer: fewer are those of an older copy or of a new store",
    ["table"],
  ),
  signerHeadAgeSeconds: gauge(
    "pay_signer_audit_head_unexported_age_seconds",
    "Age of the oldest head of the signer's audit log that its AUDIT_SINK has not accepted; 0 when it has accepted all",
  ),
  signerEntryAgeSeconds: gauge(
    "pay_signer_audit_entry_without_head_age_seconds",
    "Age of the oldest entry of the signer's audit log that no head covers",
  ),
  signerLogCompared: gauge(
    "pay_signer_log_compared_timestamp_seconds",
    "Time when this worker last compared the signer's audit log with what it was; its start time before the first comparison, and 0 where no signer's process is asked",
  ),
  signerHotBalance: gauge(
    "pay_signer_hot_balance_minor_units",
    "What the treasury holds of an asset in the final state, as the signer's own endpoints show it",
    ["asset"],
  ),
  signerHotFloor: gauge("pay_signer_hot_floor_minor_units", "The least that the treasury should hold of an asset", [
    "asset",
  ]),
  signerHotCeiling: gauge("pay_signer_hot_ceiling_minor_units", "The most that the treasury should hold of an asset", [
    "asset",
  ]),
  signerColdTransfers: counter(
    "pay_signer_cold_transfers_total",
    "Transfers to a cold address that the signer has recorded and signed",
    ["asset"],
  ),
  signerPaused: gauge("pay_signer_paused", "1 while the limits file pauses all payouts, or is missing or invalid"),
});
