import { describe, expect, test } from "vitest";
import type { BurnedByPayer } from "../../../db/burned-gas.ts";
import { decideGasRules } from "../../../transfers/gas-limits.ts";

const limits = { reserve: 100n, perPayer: 320n, perCode: 500n, perHour: 1_000n };
const row = (payer: string, codeHash: string | null, gas: bigint, more: Partial<BurnedByPayer> = {}): BurnedByPayer => {
  return { payer, codeHash, gas, transactions: 1, lastHour: gas, ...more };
};
const decide = (burned: BurnedByPayer[], inFlight: string[] = []) =>
  decideGasRules(limits, { burned, inFlight: inFlight.map((codeHash) => ({ codeHash })) });

describe("a payer", () => {
  test("is barred after three transactions in a day, however little they burned", () => {
    expect(decide([row("a", null, 3n, { transactions: 3 }), row("b", null, 2n, { transactions: 2 })]).barred).toEqual(
      new Set(["a"]),
    );
  });

  test("is barred as soon as another transaction could pass its limit, over all its codes", () => {
    expect(decide([row("a", "x", 220n)]).barred).toEqual(new Set());
    expect(decide([row("a", "x", 221n)]).barred).toEqual(new Set(["a"]));
    expect(decide([row("a", "x", 111n), row("a", "y", 110n)]).barred).toEqual(new Set(["a"]));
  });
});

describe("contract wallets", () => {
  test("with one code wait as soon as another transaction could pass its limit within the hour", () => {
    expect(decide([row("a", "x", 200n), row("b", "x", 200n)]).codes).toEqual(new Set());
    expect(decide([row("a", "x", 200n), row("b", "x", 201n)]).codes).toEqual(new Set(["x"]));
    expect(decide([row("a", "x", 500n, { lastHour: 0n })]).codes).toEqual(new Set());
  });

  test("in flight count as if they burned all they may", () => {
    expect(decide([], ["x", "x", "x", "x"]).codes).toEqual(new Set());
    expect(decide([], ["x", "x", "x", "x", "x"]).codes).toEqual(new Set(["x"]));
  });

  test("of all codes together have a limit too, which plain keys do not count for", () => {
    const codes = ["p", "q", "r"].map((code) => row(code, code, 300n));
    expect(decide([...codes, row("k", null, 900n)])).toMatchObject({ exhausted: false });
    expect(decide(codes, ["s"])).toMatchObject({ exhausted: true });
  });
});
