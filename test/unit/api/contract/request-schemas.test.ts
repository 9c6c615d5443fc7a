import { describe, expect, test } from "vitest";
import type { z } from "zod";
import {
  amount,
  flag,
  maxPollMs,
  optional,
  referenceId,
  text,
  unixSeconds,
} from "../../../../api/contract/request-schemas.ts";
import { parseInput } from "../../../../api/http/parse-input.ts";

const fits = (schema: z.ZodType, input: unknown) => schema.safeParse(input).success;
const usd = (value: unknown) => ({ unit: "iso4217/USD", value });

describe("an amount", () => {
  test("an amount is parsed into a bigint of minor units with up to 78 digits", () => {
    expect(amount.parse(usd("5000"))).toEqual({ unit: "iso4217/USD", value: 5000n });
    expect(amount.parse(usd("9".repeat(78))).value).toBe(10n ** 78n - 1n);
  });

  test.each(["0", "007", "-1", "+1", "1.5", "1e3", "0x10", " 1", "", "9".repeat(79), "١", 5, null, undefined])(
    "rejects the value %j",
    (value) => {
      expect(fits(amount, usd(value))).toBe(false);
    },
  );

  test.each(["iso4217/USD", "caip19/eip155:8453/erc20:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"])(
    "accepts the unit %s",
    (unit) => {
      expect(fits(amount, { unit, value: "1" })).toBe(true);
    },
  );

  test.each(["USD", "iso4217/usd", "iso4217/USDC", "caip19/USDC", "caip19/eip155:1", "iso4217/USD\n", "", null])(
    "rejects the unit %j",
    (unit) => {
      expect(fits(amount, { unit, value: "1" })).toBe(false);
    },
  );
});

describe("other members", () => {
  test.each([
    "A",
    "order 1/2-3:4.5,6+7",
    "wc_order_8Zk3",
    "Bestellung-ü",
    "0d6c9f0e-54b1-4a53-9c7e-6a3c8e0b6f7d",
    "#42 <b>&\"'",
    "注文 42",
    "x".repeat(255),
    "🧾".repeat(255),
  ])("a reference may be %j", (given) => {
    expect(referenceId.parse(given)).toBe(given);
  });

  test.each(["", "x".repeat(256), "🧾".repeat(256), "a\nb", "a\tb", "a\0", "a\u0085b", "\ud800", 7])(
    "a reference may not be %j",
    (given) => {
      expect(fits(referenceId, given)).toBe(false);
    },
  );

  test("a flag is true, True, 1, false, False or 0", () => {
    for (const given of ["true", "True", "1"]) expect(flag.parse(given)).toBe(true);
    for (const given of ["false", "False", "0"]) expect(flag.parse(given)).toBe(false);
    for (const bad of ["", "yes", "TRUE ", "2", true]) expect(fits(flag, bad)).toBe(false);
  });

  test("a wait is a whole number of milliseconds that fits an int64, or absent", () => {
    expect(maxPollMs.parse(undefined)).toBeUndefined();
    expect(maxPollMs.parse("0")).toBe(0);
    expect(maxPollMs.parse("9223372036854775807")).toBeGreaterThan(9e18);
    for (const bad of ["", "-1", "1.5", "1s", "1e3", "99999999999999999999", ["1", "2"]])
      expect(fits(maxPollMs, bad)).toBe(false);
  });

  test("a time is whole seconds, and a value in milliseconds is rejected", () => {
    expect(unixSeconds.parse(1_800_000_000)).toEqual(new Date("2027-01-15T08:00:00Z"));
    for (const bad of [1.5, "1800000000", -1, Date.now() * 1000, Number.NaN])
      expect(fits(unixSeconds, bad)).toBe(false);
  });

  test("text that Postgres cannot store is rejected", () => {
    expect(fits(text(3), "abc")).toBe(true);
    for (const bad of ["abcd", "a\0", "\ud800"]) expect(fits(text(3), bad)).toBe(false);
  });

  test("an optional member may be null", () => {
    for (const given of [null, undefined]) expect(optional(referenceId).parse(given)).toBeUndefined();
  });
});

describe("the error message", () => {
  test("names each invalid member and never its value", () => {
    const result = parseInput(amount, { unit: "dollars", value: 50 }, { whole: "body", code: "invalid_params" });
    if (result.ok) throw new Error("the input was accepted");
    expect(result.code).toBe("invalid_params");
    expect(result.message).toMatch(/^unit: expected iso4217\/.*; value: /);
    expect(result.message).not.toContain("dollars");
  });

  test("names the whole input when the input itself is invalid", () => {
    expect(parseInput(amount, [], { whole: "body", code: "invalid_params" })).toMatchObject({
      message: expect.stringMatching(/^body: /),
    });
  });
});
