import type { CheckoutView } from "../../../payments/lifecycle/checkout-view.ts";
import type { StatusPayload } from "./script-data.ts";

type Shown = Pick<
  CheckoutView,
  "state" | "isFinal" | "stateVersion" | "money" | "leftMs" | "returnUrl" | "info" | "txUrl"
>;

/** Returns the status of a payment as its page's script reads it. */
export function toStatusPayload(view: Shown): StatusPayload {
  const { state, isFinal, stateVersion: version, money, leftMs, returnUrl, info, txUrl } = view;
  return { status: state, isFinal, version, money, leftMs, returnUrl, txId: info?.txId ?? null, txUrl };
}
