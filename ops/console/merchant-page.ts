import type { OperatorRequestRow } from "../../db/queries/operator-requests.ts";
import type { MerchantSummary } from "../../db/queries/payment-search.ts";
import type { PaymentLine } from "../../payments/maintenance/operator-actions.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { AmountFormatter } from "./amount-formatter.ts";
import type { ConsolePage } from "./console-page.ts";
import { showRequests } from "./request-page.ts";
import { showPayments } from "./result-tables.ts";
import { facts } from "./values.ts";

/** Most payments that a merchant's page lists. */
export const MOST_PAYMENTS = 50;

/** Returns the page of a merchant with its newest payments. */
export function merchantPage(
  amounts: AmountFormatter,
  {
    merchant,
    payments,
    requests,
  }: { merchant: MerchantSummary; payments: readonly PaymentLine[]; requests: readonly OperatorRequestRow[] },
  actions: Html | undefined,
): ConsolePage {
  const body = html`
    ${facts({
      Name: merchant.name,
      Account: merchant.account_id,
      Mode: merchant.mode,
      Status: merchant.status,
      "Payouts held since": merchant.payouts_held_at,
      Created: merchant.created_at,
      Deleted: merchant.deleted_at,
    })}
    ${actions}
    ${showPayments(`The newest ${MOST_PAYMENTS} payments`, amounts, payments)}${showRequests(requests)}`;
  return { title: `Merchant ${merchant.id}`, body };
}
