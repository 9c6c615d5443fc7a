import { describe, expect, test } from "vitest";
import type { BurnedByPayer } from "../../../../db/queries/burned-gas.ts";
import { decideGasRules } from "../../../../transfers/evm/gas-limits.ts";

const limits = { reserve: 100n, perPayer: 320n, perCode: 500n, perHour: 1_000n };
const row = (payer: string, codeHash: string | null, gas: bigint, more: Partial<BurnedByPayer> = {}): BurnedByPayer => {
  return { payer, code_hash: codeHash, gas, transactions: 1, last_hour: gas, ...more };
};
const decide = (burned: BurnedByPayer[], inFlight: string[] = []) =>
  decideGasRules(limits, { burned, inFlight: inFlight.map((code_hash) => ({ code_hash })) });

describe("a payer", () => {
  test("a payer is blocked after three wasted transactions in a day, however little gas they used", () => {
    expect(decide([row("a", null, 3n, { transactions: 3 }), row("b", null, 2n, { transactions: 2 })]).barred).toEqual(
      new Set(["a"]),
    );
  });

  test("a payer is blocked as soon as another transaction could exceed its limit, summed over all its contract codes", () => {
    expect(decide([row("a", "x", 220n)]).barred).toEqual(new Set());
    expect(decide([row("a", "x", 221n)]).barred).toEqual(new Set(["a"]));
    expect(decide([row("a", "x", 111n), row("a", "y", 110n)]).barred).toEqual(new Set(["a"]));
  });
});

describe("contract wallets", () => {
  test("contract wallets with the same code wait as soon as another transaction could exceed the hourly limit of the code", () => {
    expect(decide([row("a", "x", 200n), row("b", "x", 200n)]).codes).toEqual(new Set());
    expect(decide([row("a", "x", 200n), row("b", "x", 201n)]).codes).toEqual(new Set(["x"]));
    expect(decide([row("a", "x", 500n, { last_hour: 0n })]).codes).toEqual(new Set());
  });

  test("contract wallets count with their full gas limit while their transaction is in flight", () => {
    expect(decide([], ["x", "x", "x", "x"]).codes).toEqual(new Set());
    expect(decide([], ["x", "x", "x", "x", "x"]).codes).toEqual(new Set(["x"]));
  });

  test("contract wallets of all codes share a total limit, for which externally owned accounts do not count", () => {
    const codes = ["p", "q", "r"].map((code) => row(code, code, 300n));
    expect(decide([...codes, row("k", null, 900n)])).toMatchObject({ exhausted: false });
    expect(decide(codes, ["s"])).toMatchObject({ exhausted: true });
  });
});
