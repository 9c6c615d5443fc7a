import { describe, expect, test } from "vitest";
import { currencyDecimals, currencyMoney, rescale, scaleDown, toTokenAmount } from "../../../payments/money.ts";

const usdc = { asset: "eip155:1/erc20:0xa0b8", peg: "iso4217/USD", decimals: 6 };

describe("the conversion of an amount to a token", () => {
  test.each([
    ["a cent of a token with six decimals", { unit: "iso4217/USD", value: 1n }, usdc, 10_000n],
    ["12.50 dollars", { unit: "iso4217/USD", value: 1_250n }, usdc, 12_500_000n],
    ["a token of 18 decimals", { unit: "iso4217/USD", value: 1_250n }, { ...usdc, decimals: 18 }, 125n * 10n ** 17n],
    ["a token of no decimals, rounded up", { unit: "iso4217/USD", value: 1_201n }, { ...usdc, decimals: 0 }, 13n],
    [
      "yen, which have no minor unit",
      { unit: "iso4217/JPY", value: 500n },
      { ...usdc, peg: "iso4217/JPY" },
      500_000_000n,
    ],
    [
      "Kuwaiti dinars, which have three",
      { unit: "iso4217/KWD", value: 1_234n },
      { ...usdc, peg: "iso4217/KWD" },
      1_234_000n,
    ],
    ["an amount far above 2^53", { unit: "iso4217/USD", value: 10n ** 30n + 1n }, usdc, 10n ** 34n + 10_000n],
  ])("%s", (_what, amount, token, expected) => {
    expect(toTokenAmount(amount, token)).toEqual({ value: expected, rate: null });
  });

  test("an amount in the token itself is not converted, in any letter case of its address", () => {
    expect(toTokenAmount({ unit: "caip19/eip155:1/erc20:0xA0B8", value: 7n }, usdc)).toEqual({ value: 7n, rate: null });
    expect(toTokenAmount({ unit: "caip19/eip155:1/erc20:0xa0b8", value: 7n }, usdc)).toEqual({ value: 7n, rate: null });
  });

  test.each([
    "iso4217/EUR",
    "iso4217/JPY",
    "iso4217/usd",
    "caip19/eip155:1/erc20:0xa0b9",
    "caip19/eip155:10/erc20:0xa0b8",
    "USD",
    "",
  ])("a token cannot pay %j, which is not its own currency or itself", (unit) => {
    expect(toTokenAmount({ unit, value: 1n }, usdc)).toBeUndefined();
  });
});

describe("an amount in another currency", () => {
  const rates = (numerator: bigint, denominator: bigint) =>
    new Map([["iso4217/USD", { numerator, denominator, source: "t" }]]);

  test.each<[string, { unit: string; value: bigint }, bigint, bigint, bigint]>([
    ["of two decimals", { unit: "iso4217/EUR", value: 1_000n }, 108_500_000n, 10n ** 8n, 10_850_000n],
    ["of none", { unit: "iso4217/JPY", value: 1_000n }, 66n, 10_000n, 6_600_000n],
    ["by a price the other way round", { unit: "iso4217/EUR", value: 1_000n }, 10n ** 8n, 92_000_000n, 10_869_566n],
    ["of the smallest unit, rounded up", { unit: "iso4217/EUR", value: 1n }, 1n, 10n ** 18n, 1n],
  ])("%s", (_what, amount, numerator, denominator, expected) => {
    expect(toTokenAmount(amount, usdc, rates(numerator, denominator))).toEqual({ value: expected, rate: "t" });
  });

  test("an amount in another currency can be paid only with assets whose currency has a price", () => {
    const euros = { unit: "iso4217/EUR", value: 1_000n };
    expect(toTokenAmount(euros, { ...usdc, peg: "iso4217/GBP" }, rates(1n, 1n))).toBeUndefined();
    expect(toTokenAmount({ unit: "XXX", value: 1n }, usdc, rates(1n, 1n))).toBeUndefined();
  });
});

describe("a change of decimals", () => {
  test("rounds up by less than one unit, so that a merchant never receives less than the amount", () => {
    expect(rescale(1n, 6, 2)).toBe(1n);
    expect(rescale(10_000n, 6, 2)).toBe(1n);
    expect(rescale(10_001n, 6, 2)).toBe(2n);
    for (let value = 1n; value < 2_000n; value += 7n) {
      const rounded = rescale(value, 3, 0);
      expect(rounded * 1_000n >= value && rounded * 1_000n - value < 1_000n, String(value)).toBe(true);
    }
  });

  test("a change of decimals to more decimals is exact", () => {
    expect(rescale(rescale(1_234_567n, 2, 18), 18, 2)).toBe(1_234_567n);
  });
});

test.each([
  ["USD", 2],
  ["EUR", 2],
  ["JPY", 0],
  ["KRW", 0],
  ["KWD", 3],
  ["XYZ", undefined],
  ["usd", undefined],
  ["", undefined],
  ["USDC", undefined],
])("%j has %s minor decimals", (code, decimals) => {
  expect(currencyDecimals(code)).toBe(decimals);
});

test("an amount of money is displayed with its currency's name and decimals", () => {
  expect(currencyMoney(500n, "iso4217/JPY")).toEqual({
    unit: "iso4217/JPY",
    value: 500n,
    display: { assetSymbol: "JPY", assetName: "Japanese Yen", decimals: 0 },
  });
});

test("what a merchant is owed in an asset of other decimals is rounded down, to nothing below one minor unit", () => {
  expect(scaleDown(1_999_999_999_999n, 18, 6)).toBe(1n);
  expect(scaleDown(999_999_999_999n, 18, 6)).toBe(0n);
  expect(scaleDown(1n, 6, 18)).toBe(1_000_000_000_000n);
  expect(scaleDown(7n, 6, 6)).toBe(7n);
});
