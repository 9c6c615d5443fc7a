import { randomBytes } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type CheckoutPage, checkoutPage } from "../../../../../api/checkout/pages/checkout-page.ts";
import { createCheckoutPacker } from "../../../../../api/checkout/pages/packed-checkout.ts";
import { languages, pickLanguage } from "../../../../../api/checkout/texts/languages.ts";
import { makePage } from "./checkout-page-example.ts";

type Changes = Parameters<typeof makePage>[0];

/** Returns a packer that has seen enough pages of a shape, and a function that lets enough time pass for its next template. */
function startPacker(...seen: readonly Changes[]) {
  let now = 0;
  const pack = createCheckoutPacker(() => now);
  const pass = () => {
    now += 1_000;
  };
  const see = (changes: Changes) => {
    pass();
    for (let page = 0; page <= 20; page += 1) pack(makePage(changes));
  };
  for (const changes of seen) see(changes);
  return { pack, pass, see };
}

const unpack = (packed: Buffer | undefined) => packed && gunzipSync(packed).toString();
const rendered = (page: CheckoutPage) => checkoutPage(page).markup;

const german = pickLanguage("de", undefined);
const merchant = (name: string, logoId: string | null = null) => ({ id: "merchant", name, logoId });
const usd = (value: bigint) => ({
  unit: "iso4217/USD",
  value,
  display: { assetSymbol: "USD", assetName: "US Dollar", decimals: 2 },
});

test.each(languages.map((language) => [language.tag, language] as const))(
  "pages in %s that share a template are exactly those that are rendered",
  (_tag, language) => {
    const logoId = () => randomBytes(32).toString("hex");
    const views = ["Café Central", "Ünter den 12", "$$ $1 {shop}x", "{amount} $1ab"].map((name, index) => ({
      merchant: merchant(name, logoId()),
      amount: usd([100n, 250n, 999n, 101n][index] ?? 0n),
      referenceId: `order ${index}`,
      mode: "test" as const,
      leftMs: [899_123, 839_000, 785_400, 600_000][index] ?? 0,
      sinceMs: 10 ** index,
    }));
    expect(views.map((view) => Buffer.byteLength(view.merchant.name))).toEqual([13, 13, 13, 13]);
    const { pack } = startPacker({ language, view: views[0] ?? {} });
    for (const view of views) {
      const page = makePage({ language, view });
      expect(unpack(pack(page))).toBe(rendered(page));
    }
  },
);

test("the first pages of a shape are not packed", () => {
  const pack = createCheckoutPacker(() => 0);
  const packed = Array.from({ length: 22 }, () => pack(makePage()) !== undefined);
  expect(packed.indexOf(true)).toBe(20);
  expect(packed.at(-1)).toBe(true);
});

test.each<[string, Changes]>([
  ["refresh", { refresh: true }],
  ["theme", { theme: "dark" }],
  ["ways to pay", { ways: [] }],
  ["legal links", { legal: { termsUrl: undefined, privacyUrl: undefined } }],
  ["public address", { publicUrl: "http://localhost:3000/pay" }],
  ["length of the amount", { view: { amount: usd(1_000n) } }],
  ["length of the time", { view: { leftMs: 299_000 } }],
  ["way back", { view: { returns: false } }],
  ["money", { view: { money: "unclear" } }],
  ["version", { view: { stateVersion: 2 } }],
  ["mode", { view: { mode: "test" } }],
  ["reference", { view: { referenceId: "" } }],
  ["shop", { view: { merchant: merchant("Café") } }],
  ["logo", { view: { merchant: merchant("Café Central", "a".repeat(64)) } }],
  ["language", { language: german }],
])("a page with another %s does not get the template of another page", (_what, changes) => {
  const { pack, see } = startPacker({});
  const page = makePage(changes);
  expect(pack(page)).toBeUndefined();
  see(changes);
  expect(unpack(pack(page))).toBe(rendered(page));
});

test.each<[string, Changes]>([
  ["that is not waiting for its buyer", { view: { state: "processing" } }],
  ["of a shop whose name is markup", { view: { merchant: merchant("<b>Bar & Grill</b>") } }],
  ["with a quote in its reference", { view: { referenceId: '"x"' } }],
  ["with half of a character in its reference", { view: { referenceId: "\ud83d" } }],
  ["with a line break in its reference", { view: { referenceId: "a\nb" } }],
  ["with a text that its page shows in another form", { view: { merchant: merchant("Café Central", "a b") } }],
  ["that links to an app", { appUrl: "myapp://done" }],
])("a page %s is not packed", (_what, changes) => {
  expect(startPacker(changes).pack(makePage(changes))).toBeUndefined();
});

test("strangers who vary their requests cause at most one template in 200 ms", () => {
  const { pack, see } = startPacker({ theme: "light" });
  for (let page = 0; page < 30; page += 1) expect(pack(makePage({ theme: "dark" }))).toBeUndefined();
  expect(pack(makePage({ theme: "light" }))).toBeDefined();
  see({ theme: "dark" });
  expect(pack(makePage({ theme: "dark" }))).toBeDefined();
});
