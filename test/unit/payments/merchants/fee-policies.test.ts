import fc from "fast-check";
import { expect, test } from "vitest";
import { calculateFee } from "../../../../payments/merchants/fee-policies.ts";

test.each<[string, number, bigint, bigint, number, { total: bigint; fixed: bigint }]>([
  ["nothing", 0, 0n, 1_000_000n, 6, { total: 0n, fixed: 0n }],
  ["one and a half percent", 150, 0n, 10_000_000n, 6, { total: 150_000n, fixed: 0n }],
  ["ten cents", 0, 100_000n, 10_000_000n, 6, { total: 100_000n, fixed: 100_000n }],
  [
    "one percent plus ten cents, in an asset with eighteen decimals",
    100,
    100_000n,
    10n ** 18n,
    18,
    { total: 11n * 10n ** 16n, fixed: 10n ** 17n },
  ],
  ["a percentage of very little, rounded down", 150, 0n, 10n, 6, { total: 0n, fixed: 0n }],
  ["a fixed part below the minor unit, rounded up", 0, 1n, 500n, 2, { total: 1n, fixed: 1n }],
  ["more than there is", 0, 5_000_000n, 1_000_000n, 6, { total: 999_999n, fixed: 999_999n }],
  ["one hundred percent", 10_000, 1n, 1_000n, 6, { total: 999n, fixed: 0n }],
])("the fee is computed for %s", (_what, basisPoints, fixedMicros, amount, decimals, expected) => {
  expect(calculateFee({ basisPoints, fixedMicros }, amount, decimals)).toEqual({ ...expected, basisPoints });
});

test("a fee never takes the whole amount, and its parts add up to the total", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 10_000 }),
      fc.bigInt(0n, 10n ** 9n),
      fc.bigInt(1n, 10n ** 24n),
      fc.integer({ min: 0, max: 18 }),
      (basisPoints, fixedMicros, amount, decimals) => {
        const { total, fixed } = calculateFee({ basisPoints, fixedMicros }, amount, decimals);
        expect(total).toBeGreaterThanOrEqual(0n);
        expect(total).toBeLessThan(amount);
        expect(fixed).toBeGreaterThanOrEqual(0n);
        expect(fixed).toBeLessThanOrEqual(total);
      },
    ),
  );
});
