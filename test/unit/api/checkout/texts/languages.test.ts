import { expect, test } from "vitest";
import { formatDuration, formatMoney } from "../../../../../api/checkout/pages/format-texts.ts";
import { en } from "../../../../../api/checkout/texts/en.ts";
import { languages, pickLanguage } from "../../../../../api/checkout/texts/languages.ts";
import { currencyMoney } from "../../../../../payments/money.ts";

const placesOf = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).toSorted();

test.each(languages.map((language) => [language.tag, language] as const))(
  "%s has every text, with the same placeholders",
  (_tag, { texts }) => {
    for (const [name, text] of Object.entries(en)) {
      const theirs = texts[name as keyof typeof en];
      expect(theirs.trim()).not.toBe("");
      expect({ name, places: placesOf(theirs) }).toEqual({ name, places: placesOf(text) });
    }
  },
);

test("the checkout has ten languages, one of them written from right to left", () => {
  expect(languages).toHaveLength(10);
  expect(new Set(languages.map(({ tag }) => tag)).size).toBe(10);
  expect(languages.filter(({ dir }) => dir === "rtl").map(({ tag }) => tag)).toEqual(["ar"]);
});

test.each([
  [undefined, undefined, "en"],
  [undefined, "de-AT,de;q=0.9,en;q=0.8", "de"],
  [undefined, "en;q=0.2, fr;q=0.9", "fr"],
  [undefined, "pt-PT", "pt-BR"],
  [undefined, "zh-TW,zh;q=0.9", "zh"],
  [undefined, "sv, *;q=0.5", "en"],
  [undefined, "de;q=0, es", "es"],
  ["ar", "de", "ar"],
  ["xx", "it", "it"],
])("a query for %s and an Accept-Language of %s give a page in %s", (requested, accepted, tag) => {
  expect(pickLanguage(requested, accepted).tag).toBe(tag);
});

test("amounts of any size are exact and follow the conventions of the language", () => {
  const [english, german] = [pickLanguage("en", undefined), pickLanguage("de", undefined)];
  const usd = { assetSymbol: "USD", assetName: "US Dollar", decimals: 2 };
  const big = 12345678901234567890123n;
  expect(formatMoney({ unit: "iso4217/USD", value: 5n, display: usd }, english)).toBe("$0.05");
  expect(formatMoney({ unit: "iso4217/USD", value: big, display: usd }, english)).toBe(
    "$123,456,789,012,345,678,901.23",
  );
  expect(formatMoney({ unit: "iso4217/USD", value: 1250n, display: usd }, german)).toBe("12,50\u00a0$");
  const usdc = { assetSymbol: "USDC", assetName: "USD Coin", decimals: 6 };
  expect(formatMoney({ unit: "caip19/x", value: 12_500_001n, display: usdc }, english)).toBe("12.500001 USDC");
  const yen = { assetSymbol: "JPY", assetName: "Yen", decimals: 0 };
  expect(formatMoney({ unit: "iso4217/JPY", value: 700n, display: yen }, english)).toBe("¥700");
});

test("an amount of any currency has the digits of its value, also where people write fewer decimals", () => {
  const english = pickLanguage("en", undefined);
  const show = (code: string, value: bigint) => formatMoney(currencyMoney(value, `iso4217/${code}`), english);
  expect(show("HUF", 123_456n)).toBe("HUF\u00a01,234.56");
  expect(show("HUF", 123_400n)).toBe("HUF\u00a01,234");
  expect(show("HUF", 123_450n)).toBe("HUF\u00a01,234.50");
  expect(show("USD", 500n)).toBe("$5.00");
  expect(show("IQD", 1_499n)).toBe("IQD\u00a01.499");
  expect(show("PKR", 49n)).toBe("PKR\u00a00.49");
  for (const code of Intl.supportedValuesOf("currency"))
    expect(show(code, 987_654_321n).replaceAll(/\D/g, ""), code).toBe("987654321");
});

test.each([
  [0, "0:00"],
  [999, "0:00"],
  [59_999, "0:59"],
  [301_000, "5:01"],
  [3_661_000, "1:01:01"],
])("%i ms are shown as %s, rounded down to the second", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
