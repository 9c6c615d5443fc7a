import { describe, expect, test } from "vitest";
import { formatAmount } from "../../../cli/format-amount.ts";
import { parseAmount } from "../../../cli/parse-amount.ts";
import { currencyDecimals } from "../../../payments/money.ts";

describe("an amount that a person writes", () => {
  test.each([
    ["12.50", "USD", "1250"],
    ["12.5", "usd", "1250"],
    ["12", "USD", "1200"],
    ["0.01", "EUR", "1"],
    ["1500", "JPY", "1500"],
    ["1.234", "KWD", "1234"],
    ["000.10", "USD", "10"],
  ])("%s %s is %s minor units", (text, currency, value) => {
    expect(parseAmount(text, currency)).toEqual({ unit: `iso4217/${currency.toUpperCase()}`, value });
  });

  test.each([
    ["12.505", "USD", "has 2 decimals"],
    ["1.5", "JPY", "has no decimals"],
    ["0", "USD", "more than zero"],
    ["-1", "USD", "such as 12.50"],
    ["1,50", "USD", "such as 12.50"],
    ["1e3", "USD", "such as 12.50"],
    ["12.", "USD", "such as 12.50"],
    ["12", "dollars", "such as USD"],
  ])("%s %s is refused as a wrong call", (text, currency, message) => {
    expect(() => parseAmount(text, currency)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining(message) }),
    );
  });

  test("has the same decimals as in the service for every currency", () => {
    for (const code of Intl.supportedValuesOf("currency"))
      expect([code, parseAmount("1", code).value]).toEqual([code, `1${"0".repeat(currencyDecimals(code) ?? 0)}`]);
  });
});

test.each([
  ["1250", 2, "12.50 USD"],
  ["5", 2, "0.05 USD"],
  ["12500000", 6, "12.50 USD"],
  ["12500001", 6, "12.500001 USD"],
  ["1500", 0, "1500 USD"],
])("%s minor units with %s decimals are shown as %s", (value, decimals, shown) => {
  expect(formatAmount({ unit: "iso4217/USD", value, display: { assetSymbol: "USD", decimals } })).toBe(shown);
});
