import type { CheckoutView } from "../../payments/checkout.ts";
import type { News } from "./script-data.ts";

/** What a page's script is told of its payment. */
export function toNews(view: CheckoutView): News {
  const { state, isFinal, stateVersion, money, leftMs, returnUrl, info } = view;
  return { status: state, isFinal, version: stateVersion, money, leftMs, returnUrl, txId: info?.txId ?? null };
}
