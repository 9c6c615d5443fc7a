import type { CheckoutView } from "../../../payments/lifecycle/checkout-view.ts";
import type { Language } from "../texts/languages.ts";
import { formatDuration, formatMoney } from "./format-texts.ts";

/** What the checkout page shows of a payment. Each value is written somewhere in the page or decides what is. */
export type ShownPayment = Pick<
  CheckoutView,
  "paymentId" | "mode" | "state" | "isFinal" | "stateVersion" | "money" | "referenceId" | "leftMs" | "sinceMs"
> &
  Pick<CheckoutView, "info" | "txUrl" | "returns" | "returnUrl"> & {
    shop: string;
    /** The id of our copy of the shop's logo. */
    logoId: string | null;
    /** The amount in the notation of the page's language. */
    amount: string;
    /** The time that is left, such as 4:07. */
    time: string;
  };

/** Returns what the page shows of a payment in a language. */
export function showPayment(view: CheckoutView, language: Language): ShownPayment {
  const { paymentId, mode, state, isFinal, stateVersion, money, referenceId, leftMs, sinceMs, merchant } = view;
  const { info, txUrl, returns, returnUrl } = view;
  const texts = { shop: merchant.name, amount: formatMoney(view.amount, language), time: formatDuration(leftMs) };
  const status = { paymentId, mode, state, isFinal, stateVersion, money, referenceId, leftMs, sinceMs };
  return { ...status, info, txUrl, returns, returnUrl, logoId: merchant.logoId, ...texts };
}
