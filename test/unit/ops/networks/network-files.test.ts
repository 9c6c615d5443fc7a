import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { base58 } from "@scure/base";
import { type Chain, getAddress, type Hex, hashDomain } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import * as viemChains from "viem/chains";
import { afterAll, describe, expect, test } from "vitest";
import { type EvmAsset, listEvmNetworks, readNetworks } from "../../../../runtime/networks/read-networks.ts";

const folder = new URL("../../../../ops/networks/", import.meta.url);
const names = readdirSync(folder).sort();
const textOf = (name: string) => readFileSync(new URL(name, folder), "utf8");
const filled = mkdtempSync(join(tmpdir(), "network-files-"));
afterAll(() => rmSync(filled, { recursive: true }));

/** Does what an operator does: replaces every "FILL IN" of a file. Returns the path of the new file. */
function fillIn(name: string): string {
  const address = () =>
    name.startsWith("solana") ? base58.encode(randomBytes(32)) : privateKeyToAddress(generatePrivateKey());
  const answer = (question: string) => {
    if (question.startsWith("a name")) return "test";
    if (question.startsWith("the address")) return address();
    if (question.startsWith("the https URL")) return `https://${randomBytes(4).toString("hex")}.example/`;
    throw new Error(`unknown question: ${question}`);
  };
  const file = join(filled, name);
  writeFileSync(
    file,
    textOf(name).replace(/"FILL IN: ([^"]+)"/g, (_all, question) => `"${answer(question)}"`),
  );
  return file;
}

for (const name of names) fillIn(name);
const networks = Object.fromEntries(names.map((name) => [name, readNetworks(join(filled, name))]));

/** Reference of each file's chain: EVM chain ids, and the first 32 characters of Solana's genesis hashes. */
const references = {
  "arbitrum-one.jsonc": "42161",
  "arbitrum-sepolia.jsonc": "421614",
  "avalanche-fuji.jsonc": "43113",
  "avalanche.jsonc": "43114",
  "base-sepolia.jsonc": "84532",
  "base.jsonc": "8453",
  "ethereum-sepolia.jsonc": "11155111",
  "ethereum.jsonc": "1",
  "op-mainnet.jsonc": "10",
  "op-sepolia.jsonc": "11155420",
  "polygon-amoy.jsonc": "80002",
  "polygon.jsonc": "137",
  "solana-devnet.jsonc": "EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
  "solana.jsonc": "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
};

/** What DOMAIN_SEPARATOR() of each token returns, as several public repositories have recorded it. */
const separators: Readonly<Record<string, Hex>> = {
  "eip155:1 USDC": "0x06c37168a7db5138defc7866392bb87a741f9b3d104deb5094588ce041cae335",
  "eip155:1 EURC": "0x99f188f447f0c6eaf68589359cd2ead8c2faaaaee984ab926fdb734d0040073b",
  "eip155:10 USDC": "0x26d9c34bb1a1c312f69c53b2d93b8be20faafba63af2438c6811713c9b1f933f",
  "eip155:137 USDC": "0xcaa2ce1a5703ccbe253a34eb3166df60a705c561b44b192061e28f2a985be2ca",
  "eip155:8453 USDC": "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f",
  "eip155:8453 EURC": "0xec4dcbded0afd42599589b79220899bbe000bb5ea66d6f1bc176e78d094203bb",
  "eip155:42161 USDC": "0x08d11903f8419e68b1b8721bcbe2e9fc68569122a77ef18c216f10b3b5112c78",
  "eip155:42161 USDT0": "0x566af68fb471b22d6421762f84aa7bd761c670a2e4d5c8a47d4085d5957b127c",
  "eip155:43113 USDC": "0xfe9fa105a0e9629446730e544caa6b8d05d8d4fc93451750dc50e2ddd6d374b3",
  "eip155:43114 USDC": "0xbbea200329a938bc3438984a49cb0732e66d66d7bd59c127abacc1710e77f7b3",
  "eip155:43114 EURC": "0x094e957ad84a5711a2d13ea2ddcfe3947fe1704472f07bf8a49718f55a65f4b1",
  "eip155:43114 USDt": "0xf6d4d20bf85d69d29f5cd682e5fb2884425e4aa291bb7318e203fd68c96cc0f4",
  "eip155:80002 USDC": "0x5cddc98319864e897e4469bd1d13c2288c677047b54b8cca12bd342adb6be9eb",
  "eip155:84532 USDC": "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818",
  "eip155:421614 USDC": "0x85944e1292d007732838d6eadfa67589b78ffcededbd4df60488d0af251308bb",
  "eip155:11155111 USDC": "0xb90e5057db141a932946e64d09ccb7ffc9b00bd79fec26f698d29af0c83320a6",
  "eip155:11155420 USDC": "0x09d038a3e46040fc37eb01174dbbcdb7981fbd8eafd9e1a857b1c67805dfb29e",
};

/** The EIP-712 domain that buyers sign for an asset. */
function domainOf(asset: EvmAsset): { name: string; version: string } | undefined {
  if (asset.kind === "eip3009") return asset.domain;
  return asset.kind === "permit2" && asset.allowance.by === "permit" ? asset.allowance.domain : undefined;
}

test("ops/networks has a file for each network and its test network, and each is one chain", () => {
  expect(names).toEqual(Object.keys(references));
  for (const name of names) expect([name, networks[name]?.chains.length]).toEqual([name, 1]);
});

describe.each(names)("%s", (name) => {
  const text = textOf(name);
  const chain = networks[name]?.chains[0];
  if (!chain) throw new Error(`${name} has no chain`);

  test("is refused until it is filled in, with the line of each open place", () => {
    const read = () => readNetworks(join(folder.pathname, name));
    const lines = text.split("\n");
    const lineOf = (part: string) => lines.findIndex((line) => line.includes(part)) + 1;
    expect(read).toThrow(`the networks file ${name} (NETWORKS_FILE) is invalid`);
    expect(read).toThrow(`line ${lineOf('"deployment"')}: deployment: is not filled in`);
    expect(read).toThrow(`line ${lineOf('"first"')}: chains.0.rpc.0.url: is not filled in`);
    expect(read).toThrow("chains.0.rpc.1.url: is not filled in");
    expect(read).toThrow("chains.0.treasury.address: is not filled in");
    expect(read).toThrow("chains.0.lanes.0.address: is not filled in");
  });

  test("has the CAIP-2 id of its network, and assets of that network only", () => {
    const [namespace, reference] = chain.chain.split(":");
    expect([namespace, reference]).toEqual([
      name.startsWith("solana") ? "solana" : "eip155",
      references[name as keyof typeof references],
    ]);
    for (const { asset } of chain.assets) expect(asset.split("/")[0]).toBe(chain.chain);
  });

  test("has a source with a link above each member that states a fact", () => {
    const facts = ["chain", "finality", "multicall", "permit2", "asset", "blockMs", "slotMs", "addEthereumChain"];
    const lines = text.split("\n").map((line) => line.trim());
    for (const [at, line] of lines.entries()) {
      const member = /^"(\w+)":/.exec(line)?.[1] ?? "";
      if (!facts.includes(member)) continue;
      // The comment of an asset is above its brace.
      const end = member === "asset" ? at - 1 : at;
      const start = lines.slice(0, end).findLastIndex((one) => !one.startsWith("//")) + 1;
      expect([member, lines.slice(start, end).join(" ")]).toEqual([member, expect.stringContaining("https://")]);
    }
  });
});

test("every EVM address has the checksum of EIP-55, in comments too", () => {
  for (const name of names)
    for (const [address] of textOf(name).matchAll(/\b0x[0-9a-fA-F]{40}\b/g))
      expect([name, address]).toEqual([name, getAddress(address)]);
});

test("no EVM address occurs with two checksums", () => {
  const all = names.flatMap((name) => [...textOf(name).matchAll(/\b0x[0-9a-fA-F]{40}\b/g)].map(([address]) => address));
  expect(new Set(all.map((address) => address.toLowerCase())).size).toBe(new Set(all).size);
});

test("every mint on Solana is 32 bytes", () => {
  const mints = names.flatMap((name) => [...textOf(name).matchAll(/\/token:([^"]+)"/g)].map(([, mint = ""]) => mint));
  expect(mints).toHaveLength(4);
  for (const mint of mints) expect([mint, base58.decode(mint).length]).toEqual([mint, 32]);
});

test("chain ids, Multicall3, currencies and explorers are those of viem's chain definitions", () => {
  const known: Chain[] = Object.values(viemChains).filter((one) => typeof one === "object");
  for (const { chain, multicall, addEthereumChain } of Object.values(networks).flatMap(listEvmNetworks)) {
    const expected = known
      .filter(({ id }) => `eip155:${id}` === chain)
      .map(({ contracts, nativeCurrency, blockExplorers }) => ({
        multicall: contracts?.multicall3?.address,
        symbol: nativeCurrency.symbol,
        explorer: `${blockExplorers?.default.url}/`,
      }));
    expect(expected).toContainEqual({
      multicall: multicall.toLowerCase(),
      symbol: addEthereumChain?.currency.symbol,
      explorer: addEthereumChain?.explorer,
    });
  }
});

test("the domain of every token that buyers sign for hashes to the token's own separator", () => {
  const found: [string, Hex][] = [];
  for (const { chain, assets } of Object.values(networks).flatMap(listEvmNetworks))
    for (const asset of assets) {
      const domain = domainOf(asset);
      if (!domain) continue;
      const verifyingContract = asset.asset.split("erc20:")[1] as Hex;
      const chainId = BigInt(chain.replace("eip155:", ""));
      const separator = hashDomain({
        domain: { ...domain, chainId, verifyingContract },
        types: {
          EIP712Domain: [
            { name: "name", type: "string" },
            { name: "version", type: "string" },
            { name: "chainId", type: "uint256" },
            { name: "verifyingContract", type: "address" },
          ],
        },
      });
      found.push([`${chain} ${asset.symbol}`, separator]);
    }
  expect(Object.fromEntries(found)).toEqual(separators);
});

test("all files filled in for one deployment can be used as one folder", () => {
  const { deployment, chains } = readNetworks(filled);
  expect(deployment).toBe("test");
  expect(chains).toHaveLength(names.length);
});
