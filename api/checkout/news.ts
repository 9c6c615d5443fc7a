import type { CheckoutView } from "../../payments/checkout.ts";
import type { News } from "./script-data.ts";

/** What a page's script is told of its payment. */
export function toNews(view: CheckoutView): News {
  const { state, isFinal, stateVersion: version, money, leftMs, returnUrl, info, txUrl } = view;
  return { status: state, isFinal, version, money, leftMs, returnUrl, txId: info?.txId ?? null, txUrl };
}
