// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import { expect, test } from "vitest";
import { findFamilyBranches } from "../../../scripts/family-branches.ts";

const planted = (path: string, text: string) => findFamilyBranches([{ path, text }]);

test("the check reports a branch on the chain family, with its line", () => {
  const text = ["// Solana has no oracle.", 'if (chain.startsWith("solana:")) return [];'].join("\n");
  expect(planted("payments/options/offers.ts", text)).toEqual([
    { path: "payments/options/offers.ts", line: 2, code: '"solana:"' },
  ]);
});

test.each([
  ["a comparison of the namespace", 'if (chain.namespace === "solana") return;', 2],
  ["a comparison of a prefix", 'if (id.startsWith("eip155:")) return;', 1],
  ["a prefix that is cut off", "const id = Number(chain.slice('eip155:'.length));", 1],
  ["a text that begins with a namespace", "const id = `eip155:${chainId}`;", 1],
  ["a pattern", "if (/^solana:/.test(id)) return;", 1],
  ["a chain of one family", "const { rpc } = getEvmChain(chains, id);", 1],
  ["the kind of Solana's transfers", 'if (option.kind === "spl") return;', 1],
  ["a member that only one family has", 'if ("lanes" in chain) return;', 1],
  ["a member that only one family's networks have", 'if ("slotMs" in chain.network) return;', 1],
  ["a function of one family", 'import { compareFeed } from "../../chains/evm/price-feeds.ts";', 1],
])("the check reports %s", (_name, text, count) => {
  expect(planted("payments/options/prices.ts", text)).toHaveLength(count);
});

test("comments, examples in messages, tables by namespace and types of a family are allowed", () => {
  const text = [
    'import type { FeedState } from "../../chains/evm/price-feeds.ts";',
    '/** Returns `chain.namespace`, such as "eip155". */',
    'const message = "expected a CAIP-10 account such as eip155:8453:0x…"; // "solana:" too',
    "const apps = { eip155: metaMask, solana: phantom };",
  ].join("\n");
  expect(planted("payments/options/prices.ts", text)).toEqual([]);
});

test.each([
  "chains/find-chain-driver.ts",
  "transfers/evm/evm-wallets.ts",
  "transfers/solana/solana-wallets.ts",
  "runtime/networks/read-networks.ts",
])("%s may depend on the chain family", (path) => {
  expect(planted(path, 'if (chain.namespace === "solana") return getSolanaChain(chains, id);')).toEqual([]);
});

test.each(["transfers/watch-pass.ts", "api/routes.ts", "ops/admin/money-commands.ts", "runtime/config.ts"])(
  "%s may not depend on the chain family",
  (path) => {
    expect(planted(path, 'if (id.startsWith("solana:")) return;')).toHaveLength(1);
  },
);
