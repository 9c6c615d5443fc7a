import { describe, expect, test } from "vitest";
import { canonicalAddress, canonicalAsset, nativeAsset, tokenAsset } from "../../../chains/canonical-ids.ts";
import { findChainDriver, getChainDriver } from "../../../chains/find-chain-driver.ts";

const cluster = "solana:4uhcVJyU9pJkvQyS88uRDiswHScsKQ2Y";
const mint = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const contract = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";

test("a chain's driver is found by its namespace, from a chain, an account or an asset", () => {
  const evm = getChainDriver("eip155:8453");
  expect(findChainDriver(`eip155:1:${contract}`)).toBe(evm);
  expect(findChainDriver(`eip155:1/erc20:${contract}`)).toBe(evm);
  expect(findChainDriver(cluster)).not.toBe(evm);
});

test("a chain of an unknown family has no driver, and its addresses and assets stay as they are", () => {
  expect(findChainDriver("cosmos:hub")).toBeUndefined();
  expect(() => getChainDriver("cosmos:hub")).toThrow("cosmos:hub");
  expect(canonicalAddress("cosmos:hub", "Abc")).toBe("Abc");
  expect(canonicalAsset("cosmos:hub/slip44:Abc")).toBe("cosmos:hub/slip44:Abc");
});

describe("ids", () => {
  test("EVM addresses and assets ignore case, those of Solana do not", () => {
    expect(canonicalAddress("eip155:1", contract)).toBe(contract.toLowerCase());
    expect(canonicalAsset(`EIP155:1/ERC20:${contract}`)).toBe(`eip155:1/erc20:${contract.toLowerCase()}`);
    expect(canonicalAddress(cluster, mint)).toBe(mint);
    expect(canonicalAsset(`${cluster}/token:${mint}`)).toBe(`${cluster}/token:${mint}`);
  });

  test("tokens and native assets are named by CAIP-19", () => {
    expect(tokenAsset("eip155:1", "0xa")).toBe("eip155:1/erc20:0xa");
    expect(tokenAsset(cluster, mint)).toBe(`${cluster}/token:${mint}`);
    expect(nativeAsset("eip155:1")).toBe("eip155:1/slip44:60");
    expect(nativeAsset(cluster)).toBe(`${cluster}/slip44:501`);
  });
});

test("only an EVM address with a valid checksum and a token of the family pass validation", () => {
  const evm = getChainDriver("eip155:1");
  expect(evm.validateAddress(contract)).toBeUndefined();
  expect(evm.validateAddress(contract.replace("fCD", "FCD"))).toContain("checksum");
  expect(evm.validateAddress(`0x${"0".repeat(40)}`)).toBe("is the zero address");
  expect(evm.validateToken({ chain: "eip155:1", namespace: "erc721", token: contract })).toContain("expected a token");
  const solana = getChainDriver(cluster);
  expect(solana.validateAddress(mint)).toBeUndefined();
  expect(solana.validateAddress(contract)).toContain("base58");
  expect(solana.validateToken({ chain: cluster, namespace: "nft", token: mint })).toContain("expected a token");
});

test("an amount fits what the chain and the database can store", () => {
  expect(getChainDriver("eip155:1").maxAmount).toBe(10n ** 78n - 1n);
  expect(getChainDriver(cluster).maxAmount).toBe(2n ** 64n - 1n);
});
