import { randomBytes } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type CheckoutPage, checkoutPage } from "../../../../../api/checkout/pages/checkout-page.ts";
import { createCheckoutPacker } from "../../../../../api/checkout/pages/packed-checkout.ts";
import { languages } from "../../../../../api/checkout/texts/languages.ts";

type Changes = { [K in keyof CheckoutPage]?: K extends "view" ? Partial<CheckoutPage["view"]> : CheckoutPage[K] };

const makePage = ({ view = {}, ...page }: Changes = {}): CheckoutPage => ({
  view: {
    paymentId: `pay_${randomBytes(16).toString("hex")}`,
    ...{ state: "requires_action", isFinal: false, stateVersion: 1, failureCode: null, info: null, money: "none" },
    ...{ changedAt: new Date(), createdAt: new Date(), expiresAt: new Date(), mode: "live", referenceId: null },
    amount: { unit: "iso4217/USD", value: 100n, display: { assetSymbol: "USD", assetName: "US Dollar", decimals: 2 } },
    merchant: { id: "merchant", name: "Café Central", logoId: null },
    ...{ leftMs: 899_123, sinceMs: 812, returns: true, returnUrl: null, txUrl: null },
    ...view,
  },
  ways: [{ chain: "eip155:8453", network: "Base", symbol: "USDC", networkDetails: undefined }],
  ...{ amount: "$1.00", time: "14:59", publicUrl: "https://pay.example.com", refresh: false },
  ...{ language: languages[0], theme: undefined, appUrl: undefined },
  legal: { termsUrl: "https://example.com/terms", privacyUrl: undefined },
  ...page,
});

/** Returns a packer, and a function that lets enough time pass for its next template. */
function startPacker() {
  let now = 0;
  const pack = createCheckoutPacker(() => now);
  return { pack, pass: () => (now += 1_000) };
}

const unpack = (packed: Buffer | undefined) => packed && gunzipSync(packed).toString();

test.each(languages.map((language) => [language.tag, language] as const))(
  "pages in %s that share a template are exactly those that are rendered",
  (_tag, language) => {
    const { pack } = startPacker();
    const logoId = () => randomBytes(32).toString("hex");
    const pages = ["Café Central", "Ünter den 12", "$$ $1 {shop}x"].map((name, index) =>
      makePage({
        language,
        amount: ["1.00 €", "2.50 €", "9.99 €"][index] ?? "",
        view: {
          merchant: { id: "merchant", name, logoId: logoId() },
          referenceId: `order ${index}`,
          mode: "test",
          leftMs: [899_123, 1, 0][index] ?? 0,
          sinceMs: 10 ** index,
        },
      }),
    );
    expect(pages.map(({ view }) => Buffer.byteLength(view.merchant.name))).toEqual([13, 13, 13]);
    expect(pages.map((page) => unpack(pack(page)))).toEqual([
      undefined,
      ...pages.slice(1).map((page) => checkoutPage(page).markup),
    ]);
  },
);

test("a page that differs in anything but its values does not get another page's template", () => {
  const { pack, pass } = startPacker();
  for (const page of [makePage(), makePage()]) pack(page);
  const changes: Changes[] = [
    { refresh: true },
    { theme: "dark" },
    { ways: [] },
    { legal: { termsUrl: undefined, privacyUrl: undefined } },
    { amount: "$10.00" },
    { time: "4:59" },
    { publicUrl: "http://localhost:3000/pay" },
    { view: { returns: false } },
    { view: { money: "unclear" } },
    { view: { stateVersion: 2 } },
    { view: { mode: "test" } },
    { view: { referenceId: "" } },
    { view: { merchant: { id: "merchant", name: "Café", logoId: null } } },
  ];
  for (const change of changes) {
    pass();
    for (const page of [makePage(change), makePage(change)]) {
      const packed = unpack(pack(page));
      if (packed !== undefined) expect(packed).toBe(checkoutPage(page).markup);
    }
  }
});

test.each<[string, Changes]>([
  ["that is not waiting for its buyer", { view: { state: "processing" } }],
  [
    "of a shop whose name is markup",
    { view: { merchant: { id: "merchant", name: "<b>Bar & Grill</b>", logoId: null } } },
  ],
  ["with a quote in its reference", { view: { referenceId: '"x"' } }],
  ["with half of a character in its reference", { view: { referenceId: "\ud83d" } }],
  ["that links to an app", { appUrl: "myapp://done" }],
])("a page %s is not packed", (_what, change) => {
  const { pack, pass } = startPacker();
  for (let index = 0; index < 3; index += 1) {
    pass();
    expect(pack(makePage(change))).toBeUndefined();
  }
});

test("strangers who vary their requests cause at most one template in 100 ms", () => {
  const { pack, pass } = startPacker();
  const [light, dark] = [makePage({ theme: "light" }), makePage({ theme: "dark" })];
  for (const page of [light, dark]) pack(page);
  expect(pack(light)).toBeDefined();
  expect(pack(dark)).toBeUndefined();
  pass();
  expect(pack(dark)).toBeDefined();
});
