import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import { countEndpoints, readAgreementThreshold } from "../../../../chains/endpoint-agreement.ts";
import { openTreasury } from "../../../../chains/evm/signers/open-evm-keys.ts";
import { ConfigError } from "../../../../runtime/config.ts";
import { listEvmNetworks, parseNetworks, readKey, readNetworks } from "../../../../runtime/networks/read-networks.ts";

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
  throw new Error("the document was accepted");
}

describe("the error of an invalid networks document names the member and never its value:", () => {
  test.each<[string, object, string]>([
    ["an invalid address", { multicall: secret }, "chains.0.multicall"],
    ["an invalid URL", { rpc: [{ name: "one", url: secret }] }, "chains.0.rpc.0.url"],
    [
      "announcements of blocks that are no WebSocket",
      { rpc: [{ name: "one", url: "http://127.0.0.1:1", wsUrl: `https://127.0.0.1/${secret}` }] },
      "chains.0.rpc.0.wsUrl",
    ],
    ["no endpoint", { rpc: [] }, "chains.0.rpc"],
    [
      "two endpoints with one name",
      { rpc: ["1", "2"].map((url) => ({ name: "one", url: `http://${url}.example` })) },
      "chains.0.rpc: two",
    ],
    [
      "agreementThreshold with only one endpoint",
      { assets: [{ ...asset, agreementThreshold: "5" }] },
      "assets.0.agreementThreshold",
    ],
    [
      "a private key instead of its source",
      { treasury: { address, key: secret } },
      "chains.0.treasury.key: expected where the key is, never the key itself",
    ],
    [
      "a private key beside its source",
      { treasury: { address, key: { env: "A", key: secret } } },
      "chains.0.treasury.key",
    ],
    ["a fee that is a number", { fees: { maxFeePerGas: 5, priorityFeePerGas: "1" } }, "chains.0.fees.maxFeePerGas"],
    ["a batch that Ethereum allows in no transaction", { batchGas: 16_777_217 }, "chains.0.batchGas"],
    ["a fee with a fraction", { fees: { maxFeePerGas: "1.5", priorityFeePerGas: "1" } }, "chains.0.fees.maxFeePerGas"],
    [
      "a tip above the ceiling",
      { fees: { maxFeePerGas: "1", priorityFeePerGas: "2" } },
      "chains.0.fees: priorityFeePerGas is above maxFeePerGas",
    ],
    [
      "a tip that Polygon's nodes refuse",
      {
        chain: "eip155:137",
        assets: [{ ...asset, asset: asset.asset.replace("31337", "137") }],
        fees: { maxFeePerGas: "1500000000000", priorityFeePerGas: "24999999999" },
      },
      "chains.0.fees: priorityFeePerGas is below 25000000000 wei",
    ],
    ["an unknown fee model", { feeModel: secret }, "chains.0.feeModel"],
    ["dust that is a number", { assets: [{ ...asset, dust: 5 }] }, "assets.0.dust"],
    ["dust with a fraction", { assets: [{ ...asset, dust: "0.5" }] }, "assets.0.dust"],
    ["a finality of no blocks", { finality: { blocks: 0 } }, "chains.0.finality"],
    [
      "an asset on another chain",
      { assets: [{ ...asset, asset: asset.asset.replace("31337", "1") }] },
      "assets.0.asset",
    ],
    ["a peg that is not a currency", { assets: [{ ...asset, peg: secret }] }, "chains.0.assets.0.peg"],
    [
      "a public endpoint over plain HTTP",
      { addEthereumChain: { rpc: [`http://${secret}`] } },
      "chains.0.addEthereumChain.rpc.0",
    ],
    ["no public endpoint", { addEthereumChain: { rpc: [] } }, "chains.0.addEthereumChain.rpc"],
    [
      "an explorer that is not a URL",
      { addEthereumChain: { rpc: ["https://a.example"], explorer: secret } },
      "chains.0.addEthereumChain.explorer: expected an https URL",
    ],
    [
      "a currency without a symbol",
      { addEthereumChain: { rpc: ["https://a.example"], currency: { name: "Ether" } } },
      "chains.0.addEthereumChain.currency.symbol",
    ],
    [
      "a private endpoint among the public ones",
      {
        rpc: [{ name: "one", url: `https://rpc.example/${secret}` }],
        addEthereumChain: { rpc: ["https://a.example", `https://RPC.example:443/${secret}`] },
      },
      "chains.0.addEthereumChain.rpc.1: is also listed in rpc",
    ],
    ["a lane without a key", { lanes: [{ address }] }, "chains.0.lanes.0.key"],
    ["an unknown member", { retries: secret }, "chains.0"],
  ])("%s", (_what, change, member) => {
    const message = messageOf(() => parseNetworks(document(change)));
    expect(message).toContain(member);
    expect(message).not.toContain(secret);
  });

  test("a chain that is listed twice", () => {
    const twice = { deployment: "test", chains: [network, network] };
    expect(messageOf(() => parseNetworks(twice))).toContain("chains: a chain is listed twice");
  });
});

test("assets are read in lower case, whatever case the file uses", () => {
  expect(parseNetworks(document({})).chains[0]?.assets[0]?.asset).toBe(asset.asset.toLowerCase());
});

describe("the content of a file", () => {
  const folder = mkdtemp(join(tmpdir(), "networks-test-"));
  afterAll(async () => rm(await folder, { recursive: true }));
  const write = async (text: string) => {
    const file = join(await folder, "a.txt");
    await writeFile(file, text);
    return file;
  };

  test("is not part of the error if it is not JSON; the line is", async () => {
    const file = await write(`{\n  // A comment.\n  "deployment": ${secret}\n}`);
    const message = messageOf(() => readNetworks(file));
    expect(message).toContain("networks file a.txt (NETWORKS_FILE) is invalid:\n  line 3: is not JSON");
    expect(message).not.toContain(secret);
  });

  test("may have comments and trailing commas", async () => {
    const text = JSON.stringify(document({}), null, 2).replace(/"chains": \[/, "$& // one chain\n/* below */");
    const file = await write(text.replace(/\n\}$/, ",\n}"));
    expect(readNetworks(file).chains).toHaveLength(1);
  });

  test("names each place that is not filled in, with its line", async () => {
    const rpc = [{ name: "one", url: "FILL IN: the URL" }];
    const file = await write(JSON.stringify({ ...document({ rpc }), deployment: "FILL IN: a name" }, null, 2));
    const message = messageOf(() => readNetworks(file));
    expect(message).toContain("line 2: deployment: is not filled in");
    expect(message).toMatch(/line \d+: chains\.0\.rpc\.0\.url: is not filled in/);
  });

  test("the content of a file is read as a key without its final line feed", async () => {
    const key = generatePrivateKey();
    expect(readKey({ file: await write(`${key}\n`) })).toBe(key);
  });

  test("the content of a file is not part of the error if it is not a key, and a missing file is named", async () => {
    const file = await write(`${generatePrivateKey()}00`);
    const message = messageOf(() => readKey({ file }));
    expect(message).toContain(file);
    expect(message).not.toMatch(/[0-9a-f]{60}/);
    expect(messageOf(() => readKey({ file: `${file}.gone` }))).toContain(`${file}.gone`);
  });
});

describe("a folder of networks files", () => {
  const parent = mkdtemp(join(tmpdir(), "networks-test-"));
  afterAll(async () => rm(await parent, { recursive: true }));
  const second = {
    ...network,
    chain: "eip155:31338",
    assets: [{ ...asset, asset: asset.asset.replace("31337", "31338") }],
  };
  const fill = async (files: Record<string, object | string>) => {
    const path = await mkdtemp(join(await parent, "folder-"));
    for (const [name, content] of Object.entries(files)) await writeFile(join(path, name), JSON.stringify(content));
    return path;
  };

  test("is read as one file, in the order of the names", async () => {
    const other = { deployment: "test", chains: [second] };
    const path = await fill({ "b.json": document({}), "a.jsonc": other, "readme.txt": "not read" });
    const networks = readNetworks(path);
    expect([networks.deployment, networks.chains.map(({ chain }) => chain)]).toEqual([
      "test",
      ["eip155:31338", "eip155:31337"],
    ]);
  });

  test.each<[string, Record<string, object>, string]>([
    [
      "names two deployments",
      { "a.json": document({}), "b.json": { deployment: "other", chains: [second] } },
      "deployment",
    ],
    ["lists a chain twice", { "a.json": document({}), "b.json": document({}) }, "chains: a chain is listed twice"],
    ["has an invalid file", { "a.json": document({}), "b.json": document({ rpc: [] }) }, "networks file b.json"],
    ["has no networks file", {}, "no .json or .jsonc file"],
  ])("that %s is refused", async (_what, files, text) => {
    const path = await fill(files);
    expect(messageOf(() => readNetworks(path))).toContain(text);
  });

  test("that does not exist is refused", () => {
    expect(messageOf(() => readNetworks("/nowhere"))).toContain("NETWORKS_FILE");
  });
});

describe("a key in a variable", () => {
  const key = generatePrivateKey();

  test.each([
    ["is missing", {}],
    ["is empty", { RELAY: "" }],
    ["lacks its 0x", { RELAY: key.slice(2) }],
    ["is too short", { RELAY: key.slice(0, -2) }],
  ])("that %s is reported by its variable without its value", (_how, env) => {
    const message = messageOf(() => readKey({ env: "RELAY" }, env));
    expect(message).toContain("RELAY");
    expect(message).not.toContain(key.slice(4, 40));
  });

  test("a key in a variable that belongs to another address stops the start with an error that names the address and not the key", async () => {
    const other = privateKeyToAddress(generatePrivateKey());
    const parsed = parseNetworks(document({ treasury: { address: other, key: { env: "KEY" } } }));
    const [first] = listEvmNetworks(parsed);
    if (!first) throw new Error("no network");
    const readers = { readKey: () => key, readSecret: () => "", readText: () => "" };
    const error = await openTreasury(first, readers).then(String, String);
    expect(error).toContain(other);
    expect(error).not.toContain(key.slice(4, 40));
  });
});

test("two endpoints must agree from 10,000 whole units, unless the asset sets an amount or there is only one endpoint", () => {
  const one = { name: "one", url: "http://127.0.0.1:1" };
  const two = { name: "two", url: "http://127.0.0.1:2" };
  const limitOf = (rpc: object[], more: object = {}) => {
    const [opened] = listEvmNetworks(parseNetworks(document({ rpc, assets: [{ ...asset, ...more }] })));
    const [first] = opened?.assets ?? [];
    return opened && first && readAgreementThreshold(opened, first);
  };
  expect(limitOf([one, two])).toBe(10_000_000_000n);
  expect(limitOf([one, two], { agreementThreshold: "5" })).toBe(5n);
  expect(limitOf([one, two], { agreementThreshold: null })).toBeUndefined();
  expect(limitOf([one])).toBeUndefined();
  expect(countEndpoints({ rpc: [one, { ...one, name: "repeated" }] })).toBe(1);
});
