import type { ActionName } from "../../payments/operators/requested-actions.ts";
import { type Html, html } from "../../runtime/html.ts";

/** How an action is confirmed: what the button says, what it does, and the inputs that the operator fills in. */
export type ActionForm = { title: string; effect: string; inputs?: Html };

const reference = (name: string, label: string, more: Html) =>
  html`<label>${label}<input id="${name}" name="${name}" autocomplete="off" spellcheck="false"${more}></label>`;

/** The page that confirms each action. */
export const actionForms: Readonly<Record<ActionName, ActionForm>> = {
  "retry-payment": {
    title: "Retry now",
    effect: "All unfinished work of the payment becomes due now. This is safe at any time.",
  },
  "refund-payment": {
    title: "Refund",
    effect: "The money goes back to the account that paid, from the merchant's balance.",
    inputs: reference(
      "amount",
      "Amount in minor units of the asset that was paid; empty for all that is left",
      html` inputmode="numeric"`,
    ),
  },
  "withdraw-refund": {
    title: "Withdraw the refund",
    effect: "Nothing is sent, and the amount can be refunded again. This is refused once the refund has begun.",
  },
  "assign-exception": {
    title: "Assign to a payment",
    effect:
      "The merchant of the payment is credited. The payment keeps its state. This is refused when the money does not name the payment.",
    inputs: reference("payment", "Payment (pay_…)", html` required`),
  },
  "return-exception": {
    title: "Return to the sender",
    effect: "The money is sent back to its sender, once two operators have approved it.",
  },
  "book-exception": {
    title: "Book as our own",
    effect: "The money is booked to an account of the operator, and the exception is closed.",
    inputs: html`<label>Book as
      <select id="as" name="as"><option value="capital">capital: put in or taken out by the operator</option><option value="cold">cold: moved from or to the cold address</option><option value="losses">losses: lost, or a gain that is kept</option></select></label>
      ${reference("note", "Reason, for the ledger", html` required maxlength="500"`)}`,
  },
  "retry-booking": {
    title: "Retry now",
    effect: "A worker books the row again within seconds. If that fails again, it stays in the list.",
  },
  "hold-payouts": {
    title: "Hold payouts",
    effect: "Nothing is paid out to the merchant until the payouts are released. It stays owed.",
  },
  "release-payouts": { title: "Release payouts", effect: "What is owed to the merchant is paid out again." },
};
