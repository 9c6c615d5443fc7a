import { writeFile } from "node:fs/promises";
import { hexToNumber, numberToHex, parseEther, parseGwei } from "viem";
import { afterEach, expect, test } from "vitest";
import { GAS_PRICE_ORACLE } from "../../../../chains/evm/rollup-fees.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { newSolanaKey } from "../../../../local/solana-client.ts";
import { makeMint } from "../../../../local/spl-tokens.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { type Document, PRICE, SECRET, startPreflight } from "../../../support/preflight-fixture.ts";
import { plantPredeploy } from "../../../support/rollup-predeploys.ts";
import { runProgram } from "../../../support/run-program.ts";

const world = await startPreflight();
const { chain, solana, evmProxy, solanaProxy } = world;
const [evm, cluster] = [chain.id, solana.id];

afterEach(() => {
  for (const { fault, alter } of [evmProxy, solanaProxy]) {
    fault.refuse(false);
    fault.delay(0);
    fault.fail(undefined);
    alter(undefined);
  }
});

/** What a run must find, besides rows that are ok. */
type Expected = { chain: string; endpoint?: string; check: string; status: string; detail?: string; remedy?: string };

/** Runs preflight and expects these findings, in this order, to be all that are not ok. */
async function expectFindings(document: Document, expected: Expected[], options: Parameters<typeof world.run>[1] = {}) {
  const { code, stdout, findings } = await world.run(document, options);
  const matching = expected.map(({ detail = "", remedy = "", ...exact }) =>
    expect.objectContaining({
      ...exact,
      detail: expect.stringContaining(detail),
      remedy: expect.stringContaining(remedy),
    }),
  );
  // An endpoint of a slow machine is slow, which matters only to the tests that expect it. Failed calls matter to all.
  const isSlowMachine = ({ check, status, detail }: { check: string; status: string; detail: string }) =>
    check === "latency" &&
    status === "warning" &&
    !detail.includes("calls failed") &&
    !expected.some((one) => one.check === "latency");
  expect(findings.filter((one) => one.status !== "ok" && !isSlowMachine(one))).toEqual(matching);
  expect(code).toBe(expected.some(({ status }) => status === "error") ? 1 : 0);
  expect(stdout).not.toContain(SECRET);
  return findings;
}

const at = (chainId: string) => ({ chain: chainId, endpoint: "local-1" });
/** What a process that starts finds while only one endpoint answers. */
const unconfirmedPrice = {
  chain: evm,
  check: "price EUR/USD",
  status: "error",
  detail: "only one RPC endpoint shows a price",
  remedy: "a process that starts now offers no payment",
};
const isTag = (params: unknown[], tag: string) => params[0] === tag;

test(
  "a deployment without problems passes: every row is ok, and the table fits into 120 columns",
  inRealTime,
  async () => {
    const { code, stdout } = await world.run(world.document(), { args: [] });
    const lines = stdout.trimEnd().split("\n");
    expect([code, lines.at(-1)]).toEqual([0, expect.stringMatching(/^All \d+ checks are ok\.$/)]);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
    expect(stdout).not.toContain(SECRET);
    for (const row of [
      "latency",
      "safe",
      "finalized",
      "log range",
      "Permit2",
      "nonce accounts",
      "inner instructions",
      "clock",
      "price EUR/USD",
    ])
      expect(stdout).toMatch(new RegExp(`^ {2}ok .*${row}`, "m"));
  },
);

test("the process prints JSON, shows progress on stderr, and exits with 1 when there is an error", async () => {
  const document = world.document("eip155:");
  document.chains[0].assets[0].decimals = 18;
  await writeFile(world.networksFile, JSON.stringify(document));
  const failed = await runProgram("preflight", ["--networks", world.networksFile, "--json"], world.env);
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/^checking .*\n$/) });
  expect(JSON.parse(failed.stdout)).toMatchObject({ status: "error" });
});

test("a call without a networks file, or with an invalid one, exits with 2 and names the problem", async () => {
  expect(await runProgram("preflight", ["--networks", "/nowhere"], world.env)).toMatchObject({
    code: 2,
    stderr: "--networks: there is no file /nowhere\n",
  });
  expect(await world.run({ ...world.document(), chains: [] }, { args: [] })).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("chains"),
  });
  expect(await world.run(world.document(), { args: ["--colour"] })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--colour"),
  });
});

test("an endpoint of another chain is an error, and the other endpoint serves the remaining checks", async () => {
  evmProxy.alter((method, _params, result) => (method === "eth_chainId" ? "0x1" : result));
  const findings = await expectFindings(world.document("eip155:"), [
    { ...at(evm), check: "chain id", status: "error", detail: "serves chain id 1", remedy: evm },
    unconfirmedPrice,
  ]);
  expect(findings.filter(({ endpoint }) => endpoint === "local-1")).toHaveLength(1);
  expect(findings.map(({ check }) => check)).toContain("USDC domain");
});

test("an endpoint of another Solana cluster is an error", async () => {
  solanaProxy.alter((method, _params, result) => (method === "getGenesisHash" ? "1".repeat(44) : result));
  await expectFindings(world.document("solana:"), [{ ...at(cluster), check: "chain id", status: "error" }]);
});

test("an endpoint that is down is an error, and a chain without any other is not checked further", async () => {
  evmProxy.fault.refuse(true);
  await expectFindings(world.document("eip155:"), [
    { ...at(evm), check: "chain id", status: "error", detail: "no answer (", remedy: "Check the endpoint's URL" },
    unconfirmedPrice,
  ]);
  const document = world.document("eip155:");
  document.chains[0].rpc.shift();
  const findings = await expectFindings(document, [
    { chain: "all", check: "clock", status: "warning", detail: "no endpoint sent its time" },
    { ...at(evm), check: "chain id", status: "error" },
    { chain: evm, check: "endpoints", status: "warning" },
    { chain: evm, check: "chain", status: "error", detail: "no endpoint serves it" },
  ]);
  expect(findings.filter(({ check }) => check.startsWith("key of"))).toHaveLength(2);
});

test("a WebSocket that announces blocks is ok, and one that nothing listens at is a warning", async () => {
  const document = world.document("eip155:");
  const [first] = document.chains[0].rpc;
  first.wsUrl = chain.url.replace("http", "ws");
  const findings = await expectFindings(document, []);
  expect(findings.map(({ check }) => check)).toContain("subscription");
  first.wsUrl = "ws://127.0.0.1:1";
  await expectFindings(document, [
    { chain: evm, endpoint: first.name, check: "subscription", status: "warning", detail: "does not answer" },
  ]);
});

test("an endpoint that does not answer in time is an error", async () => {
  const document = world.document("eip155:");
  // Long enough for the other endpoint on a busy machine.
  document.chains[0].rpcTimeoutMs = 5_000;
  evmProxy.fault.delay(15_000);
  await expectFindings(document, [
    { ...at(evm), check: "chain id", status: "error", detail: "no answer (timeout)" },
    unconfirmedPrice,
  ]);
});

test("an endpoint far behind the others is an error", async () => {
  evmProxy.alter((method, params, result) => {
    const block = result as { number: `0x${string}` };
    if (method !== "eth_getBlockByNumber" || !isTag(params, "latest")) return result;
    return { ...block, number: numberToHex(hexToNumber(block.number) - 60) };
  });
  await expectFindings(world.document("eip155:"), [
    { ...at(evm), check: "head agreement", status: "error", detail: "60 blocks behind" },
  ]);
  solanaProxy.alter((method, params, result) =>
    method === "getSlot" && JSON.stringify(params).includes("confirmed") ? Number(result) - 1_000 : result,
  );
  await expectFindings(world.document("solana:"), [
    { ...at(cluster), check: "head agreement", status: "error", detail: "slots behind" },
  ]);
});

test("an endpoint on a fork is an error", async () => {
  evmProxy.alter((method, _params, result) =>
    method === "eth_getBlockByNumber" ? { ...(result as object), hash: `0x${"f0".repeat(32)}` } : result,
  );
  await expectFindings(world.document("eip155:"), [{ ...at(evm), check: "same block", status: "error" }]);
});

test("an endpoint whose newest block is old is an error", async () => {
  const document = world.document("eip155:");
  // A week: the chain makes blocks on demand, so the other endpoint's newest block is some minutes old.
  document.chains[0].maxHeadAgeMs = 7 * 86_400_000;
  evmProxy.alter((method, _params, result) =>
    method === "eth_getBlockByNumber" ? { ...(result as object), timestamp: numberToHex(1_700_000_000) } : result,
  );
  await expectFindings(document, [{ ...at(evm), check: "head age", status: "error" }]);
});

test("an endpoint that reads the logs of few blocks at once is a warning that names how many", async () => {
  evmProxy.fault.fail(({ method, params }) => {
    const [{ fromBlock = "0x0", toBlock = "0x0" } = {}] = params as {
      fromBlock?: `0x${string}`;
      toBlock?: `0x${string}`;
    }[];
    const blocks = hexToNumber(toBlock) - hexToNumber(fromBlock) + 1;
    const isRefused = method === "eth_getLogs" && blocks > 10;
    return isRefused ? { code: -32_005, message: "eth_getLogs is limited to a 10 block range" } : undefined;
  });
  await expectFindings(world.document("eip155:"), [
    { ...at(evm), check: "log range", status: "warning", detail: "7 blocks at once; logRange is 500" },
  ]);
});

test("an endpoint that does not know the network's tag of finality is an error", async () => {
  const document = world.document("eip155:");
  evmProxy.fault.fail(({ params }) =>
    isTag(params, "finalized") ? { code: -39_001, message: "Unknown block" } : undefined,
  );
  const missing = { ...at(evm), check: "finalized", detail: "Unknown block" };
  await expectFindings(document, [{ ...missing, status: "warning" }]);
  document.chains[0].finality = "finalized";
  await expectFindings(document, [
    { chain: evm, endpoint: "local-0", check: "same block", status: "warning", detail: "not compared" },
    { ...at(evm), check: "same block", status: "warning", detail: "not compared" },
    { ...missing, status: "error" },
  ]);
});

test("an endpoint without the state of final blocks is a warning, and a chain on which none has it is an error", async () => {
  evmProxy.fault.fail(({ method, params: [, height] }) =>
    (method === "eth_getBalance" || method === "eth_call") && height !== "latest"
      ? { code: -32_000, message: "missing trie node 5d41 (path ) state 0x5d41 is not available, not found" }
      : undefined,
  );
  const document = world.document("eip155:");
  const missing = { ...at(evm), check: "final state", status: "warning", detail: "missing trie node" };
  await expectFindings(document, [missing]);
  document.chains[0].rpc.shift();
  await expectFindings(document, [
    missing,
    { chain: evm, check: "endpoints", status: "warning" },
    { chain: evm, check: "final state", status: "error", remedy: "never compared" },
  ]);
});

test("an endpoint that answers two of 20 calls slowly is a warning with its percentiles", inRealTime, async () => {
  let calls = 0;
  evmProxy.fault.delay(550, ({ method }) => {
    calls += Number(method === "eth_blockNumber");
    return method === "eth_blockNumber" && calls <= 2;
  });
  await expectFindings(world.document("eip155:"), [
    { ...at(evm), check: "latency", status: "warning", detail: "of 20 calls" },
  ]);
});

test.each<[string, (entry: Document) => void, Omit<Expected, "chain" | "status">]>([
  [
    "without code at its address",
    ({ assets, chain: id }) => {
      assets[0].asset = `${id}/erc20:0x${"0e".repeat(20)}`;
    },
    { check: "USDC code", detail: "no contract" },
  ],
  [
    "with other decimals",
    ({ assets }) => {
      assets[0].decimals = 18;
    },
    { check: "USDC decimals", detail: "the token has 6, the networks file 18", remedy: "Set decimals to 6" },
  ],
  [
    "with another domain name",
    ({ assets }) => {
      assets[0].domain.name = "USD Coin v2";
    },
    { check: "USDC domain", detail: 'its version() "2"' },
  ],
  [
    "of another kind",
    ({ assets }) => {
      assets[3] = { ...assets[3], kind: "eip3009", domain: { name: "Permit Token", version: "1" } };
    },
    { check: "PUSH kind", detail: "authorizationState" },
  ],
])("a token %s is an error", async (_what, change, expected) => {
  const document = world.document("eip155:");
  change(document.chains[0]);
  await expectFindings(document, [{ chain: evm, status: "error", ...expected }]);
});

test("a missing Multicall3, Permit2, Collector or Disburser is an error with its remedy", async () => {
  const document = world.document("eip155:");
  document.prices = [];
  const contracts = [
    ["Multicall3", chain.contracts.multicall, "Correct multicall"],
    ["Permit2", world.permit2, "Correct permit2"],
    ["Collector", world.collector, `collector deploy ${evm}`],
    ["Disburser", await disburserOf(), `disburser deploy ${evm}`],
  ] as const;
  for (const [check, address, remedy] of contracts) {
    const bytecode = (await chain.client.getCode({ address })) ?? "0x";
    await chain.client.setCode({ address, bytecode: "0x" });
    await expectFindings(document, [{ chain: evm, check, status: "error", remedy }]);
    await chain.client.setCode({ address, bytecode });
  }
});

async function disburserOf(): Promise<`0x${string}`> {
  const { findings } = await world.run(world.document("eip155:"));
  const detail = findings.find(({ check }) => check === "Disburser")?.detail ?? "";
  return detail.replace("at ", "") as `0x${string}`;
}

test("a lane without gas is an error that names its address", async () => {
  const [lane, relayer] = [newKey(), newSolanaKey()];
  const document = world.document("eip155:");
  document.chains[0].lanes[0] = { address: lane.address, key: { env: "NEW_LANE" } };
  await expectFindings(
    document,
    [{ chain: evm, check: "lane 0 gas", status: "error", detail: "about 0 payments", remedy: lane.address }],
    { env: { NEW_LANE: lane.privateKey } },
  );
  const onSolana = world.document("solana:");
  onSolana.chains[0].lanes.push({ address: relayer.address, key: { env: "NEW_LANE" } });
  await expectFindings(
    onSolana,
    [{ chain: cluster, check: "lane 1 gas", status: "error", detail: "at least 0 payments", remedy: relayer.address }],
    { env: { NEW_LANE: relayer.secretKey } },
  );
});

test("a fee ceiling below the current price of gas is an error", async () => {
  const document = world.document("eip155:");
  document.chains[0].fees = { maxFeePerGas: "1", priorityFeePerGas: "1" };
  await expectFindings(document, [{ chain: evm, check: "fee ceiling", status: "error", remedy: "fees.maxFeePerGas" }]);
});

test("a single transfer that offers more than one transaction may at the present price of gas is an error", async () => {
  const document = world.document("eip155:");
  const row = { chain: evm, check: "transaction fee" };
  document.chains[0].walletGas = 1_000_000;
  document.chains[0].fees = { maxFeePerGas: String(parseGwei("200")), priorityFeePerGas: String(parseGwei("100")) };
  // Anvil's base fee is at most one gwei.
  document.chains[0].fees.maxTransactionFee = String(1_060_000n * parseGwei("102"));
  await expectFindings(document, [{ ...row, status: "warning", detail: "batches are smaller" }]);
  document.chains[0].fees.maxTransactionFee = String(1_060_000n * parseGwei("100"));
  const detail = "the largest transfer needs 0.106";
  await expectFindings(document, [{ ...row, status: "error", detail, remedy: "Raise fees.maxTransactionFee" }]);
});

test("a rollup's charges count in the fee ceiling and in the number of payments that a lane can pay for", async () => {
  const document = world.document("eip155:");
  const set = await plantPredeploy(chain, "GasPriceOracle");
  const remedy = "feeModel";
  await expectFindings(document, [{ chain: evm, check: "fee model", status: "error", detail: "op-stack", remedy }]);
  document.chains[0].feeModel = "op-stack";
  const paymentsOf = async () => {
    const { findings } = await world.run(document);
    const detail = findings.find(({ check }) => check === "lane 0 gas")?.detail ?? "";
    return Number(/about (\d+) payments/.exec(detail)?.[1]);
  };
  await set(0n, 0n, 0n);
  const before = await paymentsOf();
  // As much for each of two transactions as their gas costs.
  await set(0n, 0n, 86_000n * parseGwei("1"));
  const after = await paymentsOf();
  expect(after).toBeGreaterThan(before / 3);
  expect(after).toBeLessThan((before * 2) / 3);
  await set(0n, 0n, parseEther("1"));
  const ceiling = { check: "fee ceiling", status: "error", detail: "a payment's data 1 ", remedy: "fees.maxFeePerGas" };
  await expectFindings(document, [{ chain: evm, ...ceiling }]);
  await chain.client.setCode({ address: GAS_PRICE_ORACLE, bytecode: "0x" });
});

test("a key that cannot be reached, or belongs to another address, is an error that does not show it", async () => {
  const row = { chain: evm, check: "key of lane 0", status: "error" };
  await expectFindings(world.document("eip155:"), [{ ...row, detail: "environment variable LANE_KEY_0" }], {
    env: { LANE_KEY_0: "" },
  });
  const other = newKey();
  const { stdout, findings } = await world.run(world.document("eip155:"), { env: { LANE_KEY_0: other.privateKey } });
  expect(findings).toContainEqual(expect.objectContaining(row));
  expect(stdout).not.toContain(other.privateKey.slice(4, 30));
  await expectFindings(
    world.document("solana:"),
    [{ chain: cluster, check: "key of treasury", status: "error", detail: "SOLANA_TREASURY_KEY" }],
    { env: { SOLANA_TREASURY_KEY: "" } },
  );
});

const WORKERS = { SIGNER: "unix:/run/signer.sock" };
const SIGNERS = { SIGNER_LISTEN: "unix:/run/signer.sock" };
const NO_TREASURY_KEYS = { TREASURY_KEY: "", SOLANA_TREASURY_KEY: "" };
const NO_LANE_KEYS = { LANE_KEY_0: "", SOLANA_LANE_KEY_0: "" };

test("the workers' machine passes without the keys of the treasuries, and the signer's without those of the lanes", async () => {
  const keysOf = (findings: { check: string; detail: string }[]) =>
    findings.filter(({ check }) => check.startsWith("key of")).map(({ check, detail }) => `${check} ${detail}`);
  const treasury = "key of treasury not on this machine: run preflight on the machine of the signer too";
  const lane = "key of lane 0 not on this machine: run preflight on the machine of the workers too";
  const signs = (role: string) => expect.stringMatching(`key of ${role} signs for`);
  const workers = await expectFindings(world.document(), [], { env: { ...WORKERS, ...NO_TREASURY_KEYS } });
  expect(keysOf(workers)).toEqual([treasury, signs("lane 0"), treasury, signs("lane 0")]);
  const signers = await expectFindings(world.document(), [], { env: { ...SIGNERS, ...NO_LANE_KEYS } });
  expect(keysOf(signers)).toEqual([signs("treasury"), lane, signs("treasury"), lane]);
});

test("a key that a machine has and does not need is a warning", async () => {
  const remedy = "Remove it from here";
  const extra = { status: "warning", detail: "can be used on this machine", remedy };
  await expectFindings(
    world.document(),
    [evm, cluster].map((id) => ({ ...extra, chain: id, check: "key of treasury" })),
    { env: WORKERS },
  );
  await expectFindings(world.document("eip155:"), [{ ...extra, chain: evm, check: "key of lane 0" }], { env: SIGNERS });
});

test("a price feed whose answer is older than the file allows is an error", async () => {
  const document = world.document("eip155:");
  document.prices[0].maxAgeSeconds = 60;
  await expectFindings(document, [{ chain: evm, check: "price EUR/USD", status: "error", detail: "seconds old" }]);
});

const word = (value: number) => value.toString(16).padStart(64, "0");

test.each([
  ["different prices", new RegExp(word(PRICE)), word(PRICE / 2)],
  ["a price and the same price of long ago", new RegExp(`(${word(PRICE)}[0-9a-f]{64})[0-9a-f]{64}`), `$1${word(1)}`],
])("a price feed of which two endpoints show %s is an error", async (_what, shown, replacement) => {
  evmProxy.alter((method, _params, result) =>
    method === "eth_call" && typeof result === "string" ? result.replace(shown, replacement) : result,
  );
  await expectFindings(world.document("eip155:"), [
    { chain: evm, check: "price EUR/USD", status: "error", detail: "local-1 shows another price", remedy: "is wrong" },
  ]);
});

test("a screening oracle without a contract, and an unreadable screening list, are errors", async () => {
  const document = world.document("eip155:");
  document.chains[0].screening.oracle = `0x${"0e".repeat(20)}`;
  await expectFindings(document, [
    { chain: evm, check: "screening oracle", status: "error", detail: "does not answer" },
  ]);
  await expectFindings(
    world.document("eip155:"),
    [{ chain: "all", check: "screening list", status: "error", detail: "ENOENT" }],
    { env: { SCREENING_LIST_FILE: "/nowhere/screened-accounts" } },
  );
  await expectFindings(world.document("solana:"), [{ chain: "all", check: "screening list", status: "warning" }], {
    env: { SCREENING_LIST_FILE: "" },
  });
});

test("a machine whose clock is 40 s ahead is an error", async () => {
  await expectFindings(
    world.document("eip155:"),
    [{ chain: "all", check: "clock", status: "error", detail: "s ahead of", remedy: "Run NTP" }],
    { now: () => new Date(Date.now() + 40_000) },
  );
});

test("an endpoint that records no inner instructions is a warning", async () => {
  solanaProxy.alter((method, _params, result) => {
    const { meta } = (result ?? {}) as { meta?: object };
    return method === "getTransaction" && meta
      ? { ...(result as object), meta: { ...meta, innerInstructions: null } }
      : result;
  });
  await expectFindings(world.document("solana:"), [
    { ...at(cluster), check: "inner instructions", status: "warning", detail: "not recorded" },
  ]);
});

test("missing token and nonce accounts on Solana are warnings, because the first worker creates them", async () => {
  const document = world.document("solana:");
  const mint = await makeMint(solana.client);
  document.chains[0].assets[0].asset = `${cluster}/token:${mint.address}`;
  await expectFindings(document, [
    { chain: cluster, check: "USDC account", status: "warning", detail: "does not exist", remedy: "0.00203928 SOL" },
  ]);
  await expectFindings({ ...world.document("solana:"), deployment: "another" }, [
    { chain: cluster, check: "nonce accounts", status: "warning", detail: "0 of 8 exist" },
  ]);
});

test("a mint with other decimals is an error", async () => {
  const document = world.document("solana:");
  document.chains[0].assets[0].decimals = 9;
  await expectFindings(document, [
    { chain: cluster, check: "USDC mint", status: "error", detail: "the mint has 6 decimals, not 9" },
  ]);
});
