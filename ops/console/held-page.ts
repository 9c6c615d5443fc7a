import type { MerchantSummary } from "../../db/queries/payment-search.ts";
import type { HeldTransfer } from "../../db/queries/unfinished-work.ts";
import type { listBlockedPayouts } from "../../payments/payouts/dispatch-payouts.ts";
import type { RefundView } from "../../payments/payouts/refund-views.ts";
import { html } from "../../runtime/html.ts";
import type { AmountFormatter } from "./amount-formatter.ts";
import type { ConsolePage } from "./console-page.ts";
import { showMerchants } from "./result-tables.ts";
import { link, table } from "./values.ts";

export type HeldItems = {
  merchants: readonly MerchantSummary[];
  queues: Awaited<ReturnType<typeof listBlockedPayouts>>;
  refunds: readonly RefundView[];
  transfers: readonly HeldTransfer[];
};

/** Returns the page of what waits because an operator, a rule or an error holds it. */
export function heldPage(amounts: AmountFormatter, { merchants, queues, refunds, transfers }: HeldItems): ConsolePage {
  const body = html`
    ${showMerchants("Merchants whose payouts are held", merchants)}
    ${table(
      "Blocked payouts",
      ["Kind", "Merchant", "Asset", "Blocked by", "Since", "Next check", "Payouts that wait"],
      queues.map((one) => [
        one.kind,
        link("merchants", one.merchantId),
        one.asset,
        one.blockedBy,
        one.since,
        one.nextCheckAt,
        one.waiting,
      ]),
    )}
    ${table(
      "Held refunds",
      ["Refund", "Payment", "Reason", "Amount", "Asset", "Receiver", "Created"],
      refunds.map((one) => [
        one.refundId,
        link("payments", one.paymentId),
        one.reason,
        amounts.of(one.amount, one.asset),
        one.asset,
        one.receiver,
        one.createdAt,
      ]),
    )}
    ${table(
      "Transfers on hold after an error",
      ["Transfer", "Payment", "Purpose", "Chain", "Held until", "Retries", "Last error"],
      transfers.map((one) => [
        one.id,
        link("payments", one.payment_id),
        one.purpose,
        one.chain,
        one.hold_until,
        one.retries,
        one.last_error,
      ]),
    )}`;
  return { title: "Held", section: "/console/held", body };
}
