import type { ExceptionView } from "../../payments/accounting/resolve-exceptions.ts";
import { includesRole } from "../../payments/operators/operators.ts";
import type { ActionName } from "../../payments/operators/requested-actions.ts";
import type { RefundView } from "../../payments/payouts/refund-views.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { SignedIn } from "../operator-login/session-guard.ts";
import { actionForms } from "./action-forms.ts";

/**
 * Returns links to the pages that confirm these actions; nothing for an operator who may only read.
 * @param of what the links add to the title, where a page has the same action for several subjects
 */
export function actionLinks(
  operator: SignedIn,
  subject: string,
  names: readonly ActionName[],
  of = "",
): Html | undefined {
  if (!includesRole(operator.role, "operator") || names.length === 0) return undefined;
  return html`<p class="actions">${names.map((name) => html`<a class="button" href="/console/actions/${name}/${encodeURIComponent(subject)}">${actionForms[name].title}${of}</a>`)}</p>`;
}

/** Returns the actions on an exception. Money that has left the treasury can only be booked. */
export function actionsOfException(operator: SignedIn, { id, amount, payer }: ExceptionView): Html | undefined {
  const inbound: ActionName[] =
    amount < 0n ? [] : ["assign-exception", ...(payer === null ? [] : ["return-exception" as const])];
  return actionLinks(operator, String(id), [...inbound, "book-exception"]);
}

/** Returns the actions on a payment and on its refunds that have not begun. */
export function actionsOfPayment(
  operator: SignedIn,
  payment: { id: string; state: string },
  refunds: readonly RefundView[],
): Html {
  const names: ActionName[] = payment.state === "succeeded" ? ["retry-payment", "refund-payment"] : ["retry-payment"];
  const waiting = refunds.filter(({ status }) => status === "pending" || status === "held");
  return html`${actionLinks(operator, payment.id, names)}${waiting.map(({ refundId }) => actionLinks(operator, refundId, ["withdraw-refund"], ` ${refundId}`))}`;
}
