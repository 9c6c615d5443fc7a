import type { listFailures } from "../../db/queries/failed-bookings.ts";
import type { ExceptionView } from "../../payments/accounting/resolve-exceptions.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { AmountFormatter } from "./amount-formatter.ts";
import type { ConsolePage } from "./console-page.ts";
import { link, table } from "./values.ts";

/**
 * Returns the page of money that belongs to no payment, and rows that could not be booked.
 * @param actions returns what the operator may do with an exception
 */
export function exceptionsPage(
  amounts: AmountFormatter,
  exceptions: readonly ExceptionView[],
  failures: Awaited<ReturnType<typeof listFailures>>,
  actions: { ofException: (one: ExceptionView) => Html | undefined; ofFailure: (id: number) => Html | undefined },
): ConsolePage {
  const body = html`
    ${table(
      "Open exceptions",
      ["Id", "Kind", "At", "Amount", "Asset", "From", "To", "Transaction", "Payment", "Perhaps", "Note", "Actions"],
      exceptions.map((one) => [
        one.id,
        one.kind,
        one.at,
        amounts.of(one.amount, one.asset),
        one.asset,
        one.payer,
        one.receiver,
        one.txHash,
        one.paymentId === null ? null : html`${link("payments", one.paymentId)} ${one.paymentState}`,
        link("payments", one.perhaps),
        one.note,
        actions.ofException(one),
      ]),
    )}
    ${table(
      "Failed bookings",
      ["Id", "Kind", "Chain", "Subject", "Error", "Retries", "First", "Last", "Next retry", "Actions"],
      failures.map((one) => [
        one.id,
        one.kind,
        one.chain,
        one.subject,
        one.error,
        one.retries,
        one.first_at,
        one.last_at,
        one.retry_at,
        actions.ofFailure(one.id),
      ]),
    )}`;
  return { title: "Exceptions", section: "/console/exceptions", body };
}
