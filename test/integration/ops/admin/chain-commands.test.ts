import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bytesToHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, expect, test } from "vitest";
import { checkEvmChain } from "../../../../chains/evm/check-evm-chain.ts";
import { decryptKeystore } from "../../../../chains/signers/keystore-file.ts";
import { verifySignature } from "../../../../chains/solana/ed25519-keys.ts";
import { openSolanaKey } from "../../../../chains/solana/open-solana-keys.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { newSolanaKey } from "../../../../local/solana-client.ts";
import { runAdmin } from "../../../../ops/admin/program.ts";
import { readSecret, readText } from "../../../../runtime/networks/read-networks.ts";
import { adminIn } from "../../../support/admin.ts";
import { networksFileFor, networksFor } from "../../../support/evm-chain.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { makeDeps } from "../../../support/test-deps.ts";
import { callTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

const kinds = await startTokenKinds({ collector: false });
const { chain, change } = kinds;
const deployer = newKey();
await chain.client.setBalance({ address: deployer.address, value: 10n ** 18n });
const folder = await mkdtemp(join(tmpdir(), "admin-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
const environment = {
  DATABASE_URL: await createDatabase(),
  NETWORKS_FILE: await networksFileFor(chain, { change }),
  DEPLOYER_KEY: deployer.privateKey,
  ...chain.keys.env,
};
/** Runs a command with `env` as its whole environment. */
async function runIn(env: Record<string, string>, args: string[]) {
  const output = { stdout: "", stderr: "" };
  const append = (name: keyof typeof output) => (text: string) => {
    output[name] += text;
  };
  const code = await runAdmin(args, { env, write: append("stdout"), writeError: append("stderr") });
  return { code, ...output };
}
/** Returns the actions in the audit log, oldest first. */
const listActions = async (): Promise<string[]> =>
  JSON.parse((await admin(["audit", "list", "--json"])).stdout)
    .map(({ action }: { action: string }) => action)
    .reverse();
const admin = (args: string[], more: Record<string, string> = {}) => adminIn({ ...environment, ...more })(...args);

test("the check of a chain without a Collector names the deploy command, and passes once the command has run", async () => {
  const { evm } = await makeDeps(chain, { change });
  const { detail } = { detail: expect.stringContaining(`collector deploy ${chain.id}`) };
  await expect(checkEvmChain(evm)).rejects.toMatchObject({ code: "wrong_contract", message: detail });
  expect((await admin(["collector", "show", chain.id])).stdout).toContain("not deployed");
  const lane = await admin(["collector", "deploy", chain.id, "--key", "LANE_KEY_0"]);
  expect(lane).toMatchObject({ code: 2, stderr: expect.stringContaining("use another account") });
  expect(await admin(["collector", "deploy", chain.id])).toMatchObject({ code: 0 });
  expect((await admin(["collector", "deploy", chain.id])).stdout).toContain("already deployed");
  expect(await admin(["disburser", "deploy", chain.id])).toMatchObject({ code: 0 });
  await checkEvmChain(evm);
  expect((await admin(["collector", "show", chain.id])).stdout).toContain(evm.collector);
  expect(await listActions()).toEqual(["collector.deployed", "disburser.deployed"]);

  await chain.client.setCode({ address: evm.collector, bytecode: "0xfe" });
  await expect(checkEvmChain(evm)).rejects.toMatchObject({ message: expect.stringContaining("is not the Collector") });
});

test("the check of a chain without a Disburser names the deploy command, and the treasury then approves it once per asset", async () => {
  const own = await startTokenKinds({ collector: false });
  const file = await networksFileFor(own.chain, { change: own.change });
  const run = (...args: string[]) => admin(args, { NETWORKS_FILE: file, ...own.chain.keys.env });
  await own.chain.client.setBalance({ address: deployer.address, value: 10n ** 18n });
  const { evm } = await makeDeps(own.chain, { change: own.change });
  expect(await run("disburser", "approve", own.chain.id)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("disburser deploy"),
  });
  await run("collector", "deploy", own.chain.id);
  const message = expect.stringContaining(`disburser deploy ${own.chain.id}`);
  await expect(checkEvmChain(evm)).rejects.toMatchObject({ code: "wrong_contract", message });
  expect((await run("disburser", "deploy", own.chain.id)).stdout).toContain(evm.disburser);
  await checkEvmChain(evm);

  const treasury = privateKeyToAccount(own.chain.keys.treasury.privateKey);
  await own.chain.client.setBalance({ address: treasury.address, value: 10n ** 18n });
  // This token changes an allowance only through zero, and its allowance is too small.
  const call = { token: tokenOf(own.assets.zeroFirst), functionName: "approve", by: treasury };
  await callTestToken(own.chain, { ...call, args: [evm.disburser, 1n] });
  expect(await run("disburser", "approve", own.chain.id, "--asset", own.assets.usdc)).toMatchObject({ code: 2 });
  const [one] = JSON.parse(
    (await run("disburser", "approve", own.chain.id, "--asset", own.assets.zeroFirst, "--json")).stdout,
  );
  expect(one).toMatchObject({ asset: own.assets.zeroFirst, state: "approved" });
  const states = async () =>
    JSON.parse((await run("disburser", "approve", own.chain.id, "--json")).stdout).map(
      ({ state }: { state: string }) => state,
    );
  expect(await states()).toEqual(["approved", "already approved", "approved"]);
  expect(await states()).toEqual(["already approved", "already approved", "already approved"]);
  const approvals = (await listActions()).filter((action) => action === "disburser.approved");
  expect(approvals.length).toBe(3);
  await own.chain.client.setCode({ address: evm.disburser, bytecode: "0xfe" });
  await expect(checkEvmChain(evm)).rejects.toMatchObject({ message: expect.stringContaining("is not the Disburser") });
});

test("a command names a chain that the networks file lacks", async () => {
  const { code, stderr } = await admin(["collector", "show", "eip155:5"]);
  expect([code, stderr]).toEqual([2, "the networks file has no chain eip155:5\n"]);
});

/** What the networks file declares of a token, and the part of the chain's reply that contradicts it. */
test.each<[string, keyof typeof kinds.assets, Record<string, unknown>, string]>([
  [
    "EIP-3009 that it lacks",
    "push",
    { kind: "eip3009", domain: { name: "Permit Token", version: "1" } },
    "authorizationState",
  ],
  [
    "EIP-2612 that it lacks",
    "zeroFirst",
    { kind: "permit2", allowance: { by: "permit", domain: { name: "Zero First", version: "1" } } },
    "the domain",
  ],
  [
    "EIP-2612 under another name",
    "permit",
    { kind: "permit2", allowance: { by: "permit", domain: { name: "Other", version: "1" } } },
    "the domain",
  ],
  ["other decimals", "push", { kind: "push", decimals: 18 }, "18 decimals"],
])("a process stops when the networks file declares a token with %s", async (_what, name, declared, message) => {
  const [usdc] = (await networksFor(chain)).chains[0]?.assets ?? [];
  const entry = { asset: kinds.assets[name], symbol: "T", name: "T", decimals: 6, peg: "iso4217/USD", ...declared };
  const { evm } = await makeDeps(chain, { change: { ...change, assets: [usdc, entry] } });
  await expect(checkEvmChain(evm)).rejects.toMatchObject({
    code: "wrong_contract",
    message: expect.stringContaining(message),
  });
});

test("an address without a contract is not accepted as a token", async () => {
  const entry = {
    asset: `${chain.id}/erc20:0x${"0e".repeat(20)}`,
    symbol: "T",
    name: "T",
    decimals: 6,
    peg: "iso4217/USD",
    kind: "push",
  };
  const { evm } = await makeDeps(chain, { change: { assets: [entry] } });
  expect(tokenOf(entry.asset)).toBe(`0x${"0e".repeat(20)}`);
  await expect(checkEvmChain(evm)).rejects.toMatchObject({ code: "wrong_contract" });
});

test("a keystore is written once, readable by its owner only, and opens with its password", async () => {
  const file = join(folder, "lane.json");
  const key = newKey();
  const args = ["keystores", "new", file, "--password", "SECRET", "--key", "OLD_KEY"];
  const more = { SECRET: " with blanks ", OLD_KEY: key.privateKey };
  const made = await admin(args, more);
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining(key.address) });
  expect(made.stdout + made.stderr).not.toContain(key.privateKey.slice(4, 30));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(bytesToHex(await decryptKeystore(await readFile(file, "utf8"), " with blanks "))).toBe(key.privateKey);
  await writeFile(file, "kept");
  expect(await admin(args, more)).toMatchObject({ code: 1, stderr: expect.stringContaining("EEXIST") });
  expect(await readFile(file, "utf8")).toBe("kept");
});

test("a keystore of a Solana key opens with its password, and a command for an unknown family is refused", async () => {
  const file = join(folder, "solana-lane.json");
  const key = newSolanaKey();
  const args = ["keystores", "new", file, "--password", "SECRET", "--key", "OLD_KEY"];
  const more = { SECRET: "correct horse", OLD_KEY: key.secretKey };
  expect(await admin([...args, "--for", "tron"], more)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("tron"),
  });
  const made = await admin([...args, "--for", "solana"], more);
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining(key.address) });
  process.env["SOLANA_PASSWORD"] = "correct horse";
  const account = { address: key.address, key: { keystore: file, password: { env: "SOLANA_PASSWORD" } } };
  const signer = await openSolanaKey(account, { readSecret, readText });
  const message = Buffer.from("a message");
  expect(verifySignature(key.address, message, await signer.sign(message))).toBe(true);
});

test("keystores new needs no database, makes a key of either family, and shows no secret that was typed in place of a name", async () => {
  for (const [family, address] of [
    ["evm", /0x[0-9a-fA-F]{40}/],
    ["solana", /[1-9A-HJ-NP-Za-km-z]{32,44}/],
  ] as const) {
    const args = ["keystores", "new", join(folder, `new-${family}`), "--password", "SECRET", "--for", family];
    const made = await runIn({ SECRET: "correct horse" }, args);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(address), stderr: "" });
  }
  const to = ["keystores", "new", join(folder, "none.json")];
  const secret = newSolanaKey().secretKey;
  for (const args of [
    [...to, "--password", "hunter2"],
    [...to, "--password", "SECRET", "--key", secret],
    [...to, "--password", "SECRET", "--key", "WRONG", "--for", "solana"],
    [...to, "--password", "SECRET", "--key", "WRONG"],
  ]) {
    const { code, stdout, stderr } = await runIn({ SECRET: "correct horse", WRONG: `${secret}1` }, args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^--(password|key): expected [^\n]+\n$/);
    expect(stdout + stderr).not.toMatch(new RegExp(`hunter2|${secret}`));
  }
  await expect(stat(join(folder, "none.json"))).rejects.toThrow("ENOENT");
});

test("networks check reports chains with only one endpoint, and the help explains what that means", async () => {
  const run = (file: string, ...args: string[]) => admin(["networks", "check", ...args], { NETWORKS_FILE: file });
  const one = await run(await networksFileFor(chain, { change }));
  expect(one).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${chain.id}  1 endpoint\n  its only endpoint`),
  });
  const two = await run(await networksFileFor(chain, { change, rpcUrls: [chain.url, "http://127.0.0.1:1"] }), "--json");
  expect(JSON.parse(two.stdout)).toMatchObject([
    { endpoints: 2, agreementThreshold: { [kinds.assets.usdc]: String(10_000n * 10n ** 6n) } },
  ]);
  expect((await admin(["networks", "check", "--help"])).stdout).toContain("A single endpoint decides alone");
});
