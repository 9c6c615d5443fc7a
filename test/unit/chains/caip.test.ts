import { describe, expect, test } from "vitest";
import { isChainId, parseAccountId, parseAssetId } from "../../../chains/caip.ts";

const address = `0x${"aB".repeat(20)}`;

describe("an account (CAIP-10)", () => {
  test.each([
    [`eip155:1:${address}`, { chain: "eip155:1", address }],
    [
      "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:7S3P4HxJpyyigGzodYwHtCxZyUQe9JiBMHyRWXArAaKv",
      { chain: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", address: "7S3P4HxJpyyigGzodYwHtCxZyUQe9JiBMHyRWXArAaKv" },
    ],
    ["cosmos:cosmoshub-3:cosmos1t2u", { chain: "cosmos:cosmoshub-3", address: "cosmos1t2u" }],
    ["hedera:mainnet:0.0.1234567890-zbhlt", { chain: "hedera:mainnet", address: "0.0.1234567890-zbhlt" }],
    [`eip155:1:${"a".repeat(128)}`, { chain: "eip155:1", address: "a".repeat(128) }],
  ])("%s is split, and the address keeps its spelling", (text, parts) => {
    expect(parseAccountId(text)).toEqual(parts);
  });

  test.each([
    "",
    ":",
    "::",
    address,
    `eip155:${address}`,
    `eip155::${address}`,
    "eip155:1:",
    `EIP155:1:${address}`,
    `ab:1:${address}`,
    `eip155:1:2:${address}`,
    `eip155:1:${address}\n`,
    ` eip155:1:${address}`,
    `eip155:${"1".repeat(33)}:${address}`,
    `eip155:1:${"a".repeat(129)}`,
    "eip155:1:a b",
    "eip155:1:a/b",
  ])("%j is refused", (text) => {
    expect(parseAccountId(text)).toBeUndefined();
  });
});

describe("an asset (CAIP-19)", () => {
  test.each([
    [`eip155:8453/erc20:${address}`, { chain: "eip155:8453", namespace: "erc20", token: address }],
    [
      "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:EPjFWdd5",
      { chain: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", namespace: "token", token: "EPjFWdd5" },
    ],
    ["eip155:1/slip44:60", { chain: "eip155:1", namespace: "slip44", token: "60" }],
  ])("%s is split", (text, parts) => {
    expect(parseAssetId(text)).toEqual(parts);
  });

  test.each([
    "",
    `eip155:1:${address}`,
    "eip155:1/erc20:",
    `eip155:1/erc20/${address}`,
    `eip155/erc20:${address}`,
    `eip155:1/e:${address}`,
    `eip155:1/erc20:${address}/7`,
    `eip155:1/erc20:${address}\n`,
    `eip155:1//erc20:${address}`,
    `eip155:1/ERC20:${address}`,
  ])("%j is refused", (text) => {
    expect(parseAssetId(text)).toBeUndefined();
  });
});

test.each([
  ["eip155:1", true],
  ["solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", true],
  ["eip155", false],
  ["eip155:", false],
  [":1", false],
  ["eip155:1:2", false],
  ["eip155:1\n", false],
  ["EIP155:1", false],
])("%j is a chain id (CAIP-2): %s", (text, expected) => {
  expect(isChainId(text)).toBe(expected);
});
