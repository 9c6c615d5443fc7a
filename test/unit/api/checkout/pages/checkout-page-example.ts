import { randomBytes } from "node:crypto";
import type { CheckoutPage } from "../../../../../api/checkout/pages/checkout-page.ts";
import { showPayment } from "../../../../../api/checkout/pages/shown-payment.ts";
import { languages } from "../../../../../api/checkout/texts/languages.ts";
import type { CheckoutView } from "../../../../../payments/lifecycle/checkout-view.ts";

type Changes = Partial<Omit<CheckoutPage, "view">> & { view?: Partial<CheckoutView> };

/** Returns what the checkout page of a payment that waits for its buyer is made of. Each has an id of its own. */
export function makePage({ view = {}, language = languages[0], ...page }: Changes = {}): CheckoutPage {
  const [createdAt, changedAt, expiresAt] = [new Date(), new Date(), new Date()];
  const payment: CheckoutView = {
    paymentId: `pay_${randomBytes(16).toString("hex")}`,
    ...{ mode: "live", state: "requires_action", isFinal: false, stateVersion: 1, failureCode: null, info: null },
    ...{ createdAt, changedAt, expiresAt, referenceId: null, money: "none" },
    amount: { unit: "iso4217/USD", value: 100n, display: { assetSymbol: "USD", assetName: "US Dollar", decimals: 2 } },
    merchant: { id: "merchant", name: "Café Central", logoId: null },
    ...{ leftMs: 899_123, sinceMs: 812, returns: true, returnUrl: null, txUrl: null },
    ...view,
  };
  return {
    view: showPayment(payment, language),
    ways: [{ chain: "eip155:8453", network: "Base", symbol: "USDC", networkDetails: undefined }],
    publicUrl: "https://pay.example.com",
    refresh: false,
    language,
    theme: undefined,
    appUrl: undefined,
    legal: { termsUrl: "https://example.com/terms", privacyUrl: undefined },
    ...page,
  };
}
