import type { MerchantSummary } from "../../db/queries/payment-search.ts";
import type { PaymentLine } from "../../payments/maintenance/operator-actions.ts";
import type { RefundView } from "../../payments/payouts/refund-views.ts";
import type { Html } from "../../runtime/html.ts";
import type { AmountFormatter } from "./amount-formatter.ts";
import { link, table } from "./values.ts";

/** Returns a table of payments that links to their pages. */
export function showPayments(title: string, amounts: AmountFormatter, payments: readonly PaymentLine[]): Html {
  return table(
    title,
    ["Payment", "Mode", "State", "Merchant", "Reference", "Amount", "Created", "Changed"],
    payments.map((one) => [
      link("payments", one.id),
      one.mode,
      one.state,
      link("merchants", one.merchantId),
      one.reference,
      amounts.read(one.amount),
      one.createdAt,
      one.updatedAt,
    ]),
  );
}

/** Returns a table of merchants that links to their pages. */
export function showMerchants(title: string, merchants: readonly MerchantSummary[]): Html {
  return table(
    title,
    ["Merchant", "Name", "Account", "Mode", "Payouts held since", "Deleted"],
    merchants.map((one) => [
      link("merchants", one.id),
      one.name,
      one.account_id,
      one.mode,
      one.payouts_held_at,
      one.deleted_at,
    ]),
  );
}

/** Returns a table of refunds. */
export const showRefunds = (amounts: AmountFormatter, refunds: readonly RefundView[]): Html =>
  table(
    "Refunds",
    ["Refund", "Status", "Reason", "Amount", "Asset", "Receiver", "Transaction", "Created", "Succeeded"],
    refunds.map((one) => [
      one.refundId,
      one.status,
      one.reason,
      amounts.of(one.amount, one.asset),
      one.asset,
      one.receiver,
      one.txId,
      one.createdAt,
      one.succeededAt,
    ]),
  );
