import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import { countEndpoints, readAgreeFrom } from "../../../chains/endpoints.ts";
import { openEvmKeys } from "../../../chains/evm/signers/open.ts";
import { ConfigError } from "../../../ops/config.ts";
import { listEvmNetworks, parseNetworks, readKey, readNetworks } from "../../../ops/networks.ts";

const secret = "s3cr3t-value";
const address = `0x${"b1".repeat(20)}`;
const asset = {
  asset: `eip155:31337/erc20:0x${"A1".repeat(20)}`,
  symbol: "USDC",
  name: "USD Coin",
  decimals: 6,
  kind: "eip3009",
  peg: "iso4217/USD",
  domain: { name: "USD Coin", version: "2" },
};
const network = {
  chain: "eip155:31337",
  name: "Local",
  rpc: [{ name: "one", url: "http://127.0.0.1:1" }],
  blockMs: 1_000,
  pollMs: 100,
  finality: { blocks: 1 },
  multicall: address,
  fees: { maxFeePerGas: "1000000000", priorityFeePerGas: "1" },
  treasury: { address, key: { env: "KEY" } },
  lanes: [{ address, key: { env: "KEY" } }],
  assets: [asset],
};
const document = (change: object) => ({ deployment: "test", chains: [{ ...network, ...change }] });

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error("nothing was refused");
}

describe("a networks document that is not usable names the member and never its value:", () => {
  test.each<[string, object, string]>([
    ["an address", { multicall: secret }, "chains.0.multicall"],
    ["a URL", { rpc: [{ name: "one", url: secret }] }, "chains.0.rpc.0.url"],
    ["no endpoint", { rpc: [] }, "chains.0.rpc"],
    [
      "an amount for two endpoints where there is one",
      { assets: [{ ...asset, agreeFrom: "5" }] },
      "assets.0.agreeFrom",
    ],
    ["a key in place of where it is", { treasury: { address, key: secret } }, "chains.0.treasury.key"],
    ["a key beside where it is", { treasury: { address, key: { env: "A", key: secret } } }, "chains.0.treasury.key"],
    ["a fee that is a number", { fees: { maxFeePerGas: 5, priorityFeePerGas: "1" } }, "chains.0.fees.maxFeePerGas"],
    ["a fee with a fraction", { fees: { maxFeePerGas: "1.5", priorityFeePerGas: "1" } }, "chains.0.fees.maxFeePerGas"],
    ["dust that is a number", { assets: [{ ...asset, dust: 5 }] }, "assets.0.dust"],
    ["dust with a fraction", { assets: [{ ...asset, dust: "0.5" }] }, "assets.0.dust"],
    ["a finality of no blocks", { finality: { blocks: 0 } }, "chains.0.finality"],
    [
      "an asset on another chain",
      { assets: [{ ...asset, asset: asset.asset.replace("31337", "1") }] },
      "assets.0.asset",
    ],
    ["a peg that is no currency", { assets: [{ ...asset, peg: secret }] }, "chains.0.assets.0.peg"],
    ["a public endpoint over plain HTTP", { forWallets: { rpc: [`http://${secret}`] } }, "chains.0.forWallets.rpc.0"],
    ["no public endpoint", { forWallets: { rpc: [] } }, "chains.0.forWallets.rpc"],
    [
      "an explorer that is none",
      { forWallets: { rpc: ["https://a.example"], explorer: secret } },
      "chains.0.forWallets.explorer: expected an https URL",
    ],
    [
      "a currency without a symbol",
      { forWallets: { rpc: ["https://a.example"], currency: { name: "Ether" } } },
      "chains.0.forWallets.currency.symbol",
    ],
    [
      "an endpoint of our own among the public ones",
      {
        rpc: [{ name: "one", url: `https://rpc.example/${secret}` }],
        forWallets: { rpc: ["https://a.example", `https://RPC.example:443/${secret}`] },
      },
      "chains.0.forWallets.rpc.1: is also listed in rpc",
    ],
    ["a lane without a key", { lanes: [{ address }] }, "chains.0.lanes.0.key"],
    ["a member that there is not", { retries: secret }, "chains.0"],
  ])("%s", (_what, change, member) => {
    const message = messageOf(() => parseNetworks(document(change)));
    expect(message).toContain(member);
    expect(message).not.toContain(secret);
  });

  test("one chain that stands twice", () => {
    const twice = { deployment: "test", chains: [network, network] };
    expect(messageOf(() => parseNetworks(twice))).toContain("chains: a chain is listed twice");
  });
});

test("assets are compared in lower case, whatever the file writes", () => {
  expect(parseNetworks(document({})).chains[0]?.assets[0]?.asset).toBe(asset.asset.toLowerCase());
});

describe("what a file holds", () => {
  const folder = mkdtemp(join(tmpdir(), "networks-test-"));
  afterAll(async () => rm(await folder, { recursive: true }));
  const write = async (text: string) => {
    const file = join(await folder, "a.txt");
    await writeFile(file, text);
    return file;
  };

  test("is never shown when it is no JSON", async () => {
    const file = await write(`{"deployment": "${secret}"`);
    expect(messageOf(() => readNetworks(file))).not.toContain(secret);
  });

  test("is read as a key without the line's end", async () => {
    const key = generatePrivateKey();
    expect(readKey({ file: await write(`${key}\n`) })).toBe(key);
  });

  test("is never shown when it is no key, nor where it is missing", async () => {
    const file = await write(`${generatePrivateKey()}00`);
    const message = messageOf(() => readKey({ file }));
    expect(message).toContain(file);
    expect(message).not.toMatch(/[0-9a-f]{60}/);
    expect(messageOf(() => readKey({ file: `${file}.gone` }))).toContain(`${file}.gone`);
  });
});

describe("a key in a variable", () => {
  const key = generatePrivateKey();

  test.each([
    ["is missing", {}],
    ["is empty", { RELAY: "" }],
    ["lacks its 0x", { RELAY: key.slice(2) }],
    ["is too short", { RELAY: key.slice(0, -2) }],
  ])("that %s is named by its variable and not shown", (_how, env) => {
    const message = messageOf(() => readKey({ env: "RELAY" }, env));
    expect(message).toContain("RELAY");
    expect(message).not.toContain(key.slice(4, 40));
  });

  test("that belongs to another address stops the start, naming the address and not the key", async () => {
    const other = privateKeyToAddress(generatePrivateKey());
    const parsed = parseNetworks(document({ treasury: { address: other, key: { env: "KEY" } } }));
    const [first] = listEvmNetworks(parsed);
    if (!first) throw new Error("no network");
    const readers = { readKey: () => key, readSecret: () => "", readText: () => "" };
    const said = await openEvmKeys(first, readers).then(String, String);
    expect(said).toContain(other);
    expect(said).not.toContain(key.slice(4, 40));
  });
});

test("two endpoints have to agree from 10,000 whole units on, unless the asset names an amount or there is one endpoint", () => {
  const one = { name: "one", url: "http://127.0.0.1:1" };
  const two = { name: "two", url: "http://127.0.0.1:2" };
  const limitOf = (rpc: object[], more: object = {}) => {
    const [opened] = listEvmNetworks(parseNetworks(document({ rpc, assets: [{ ...asset, ...more }] })));
    const [first] = opened?.assets ?? [];
    return opened && first && readAgreeFrom(opened, first);
  };
  expect(limitOf([one, two])).toBe(10_000_000_000n);
  expect(limitOf([one, two], { agreeFrom: "5" })).toBe(5n);
  expect(limitOf([one, two], { agreeFrom: null })).toBeUndefined();
  expect(limitOf([one])).toBeUndefined();
  expect(countEndpoints({ rpc: [one, { ...one, name: "again" }] })).toBe(1);
});
