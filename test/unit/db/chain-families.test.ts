import { describe, expect, test } from "vitest";
import { readEvmRow, readFamilyRow, readSolanaRow } from "../../../db/chain-families.ts";

const evm = { kind: "eip3009" as const, token: "0x7e", payer: "0xb0", receiver: "0x5e", valid_before: 4_000_000_000 };
const solana = { kind: "spl" as const, token: "mint", payer: "buyer", receiver: "shop", valid_before: null };

test("a row of either chain family is read as it is stored", () => {
  expect(readFamilyRow(evm)).toBe(evm);
  expect(readFamilyRow(solana)).toBe(solana);
});

test("a row is not read as one of the other chain family", () => {
  expect(() => readSolanaRow(evm)).toThrow("does not fit its chain");
  expect(() => readEvmRow(solana)).toThrow("does not fit its chain");
});

describe("a row that does not fit its kind is not read", () => {
  test.each([
    ["an EVM row whose token is not hex", { ...evm, token: "mint" }],
    ["an EVM row whose payer is not hex", { ...evm, payer: "buyer" }],
    ["an EVM row whose receiver is not hex", { ...evm, receiver: "shop" }],
    ["an EVM row without an end of its authorization", { ...evm, valid_before: null }],
    ["a Solana row with the end of an authorization", { ...solana, valid_before: 1 }],
  ])("%s", (_what, row) => {
    expect(() => readFamilyRow(row)).toThrow("does not fit its chain");
  });
});
