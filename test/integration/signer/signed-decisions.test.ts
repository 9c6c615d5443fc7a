import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { createLog } from "../../../runtime/log.ts";
import { listWaitingKeys } from "../../../signer/approval-keys.ts";
import { createSignerClient } from "../../../signer/client.ts";
import { createStore } from "../../../signer/create-store.ts";
import { listWaiting } from "../../../signer/destinations.ts";
import type { DestinationsRequest, Statement } from "../../../signer/protocol.ts";
import type { StatementSubject } from "../../../signer/statements.ts";
import { adminIn } from "../../support/admin.ts";
import { makeApprovalKey, signStatement } from "../../support/approval-key.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { networksFileFor, networksFor, startChain } from "../../support/evm-chain.ts";
import { runProgram } from "../../support/run-program.ts";
import { scrape, sumOf } from "../../support/scrape.ts";
import { spawnProcess } from "../../support/spawn-process.ts";
import { limitsDocument } from "../../support/test-signer.ts";
import { waitFor } from "../../support/wait-for.ts";

// Decisions that reach the signer's process by a file, because a thief of the database withholds what it stores.

const chain = await startChain();
const { deployment } = await networksFor(chain);
const networksFile = await networksFileFor(chain);
const operator = makeApprovalKey();
const merchantId = "mrch_1";
const [old, fresh] = [newKey(), newKey()].map(({ address }) => address.toLowerCase()) as [string, string];

const subjectOf = (action: "approve destination" | "reject destination") =>
  ({ action, merchantId, asset: chain.asset, receiver: fresh }) as const;

/** A signer's process with a destination that applies, and one that waits for some hours. */
async function setUp({ hours = 72 } = {}) {
  const folder = await makeScratch("signed-decisions");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const file = (name: string) => join(folder, name);
  const env = {
    ...chain.keys.env,
    NETWORKS_FILE: networksFile,
    SIGNER_LISTEN: `unix:${file("signer.sock")}`,
    SIGNER_STORE: file("signer.sqlite"),
    SIGNER_LIMITS_FILE: file("limits.jsonc"),
  };
  const setPaused = (paused: boolean) => {
    const operators = [{ name: "ana", publicKey: operator.publicKey }];
    const change = { paused, destinationWaitingHours: hours, operators };
    return writeFile(env.SIGNER_LIMITS_FILE, JSON.stringify(limitsDocument([chain.asset], { file: change })));
  };
  await setPaused(false);
  const run = (...args: string[]) => runProgram("signer", args, env);
  const store = createStore(env.SIGNER_STORE, { command: "init", at: new Date() });
  addCleanup(() => store.close());
  const start = () => spawnProcess({ role: "signer", env });
  const running = await start();
  const signer = createSignerClient(
    { socketPath: file("signer.sock") },
    { log: createLog({ level: "silent", role: "test" }) },
  );
  addCleanup(async () => signer.close());
  const report = async (request: Partial<DestinationsRequest>) => {
    const nothing = { destinations: [], statements: [], approvalKeys: [], revokedKeys: [] };
    const answer = await signer.claimDestinations({ ...nothing, ...request });
    if (!answer) throw new Error("the signer does not answer");
    return answer;
  };
  const claim = async (receiver: string) =>
    (await report({ destinations: [{ merchantId, asset: chain.asset, receiver, state: "applied" }] })).destinations[0];
  expect(await claim(old)).toMatchObject({ state: "applied" });
  const decide = async (...statements: Statement[]) => {
    await writeFile(file("decisions.json"), JSON.stringify(statements.length === 1 ? statements[0] : statements));
    return run("decide", file("decisions.json"));
  };
  const countWaiting = () => listWaiting(store).length + listWaitingKeys(store).length;
  return { run, start, running, report, claim, decide, countWaiting, setPaused, file };
}

const byOperator = (subject: StatementSubject) => signStatement(operator, subject, { signer: "ana", deployment });

describe("a signed statement in a file", () => {
  test("rejects a destination in a signer that runs", async () => {
    const { run, claim, decide, countWaiting } = await setUp();
    expect(await claim(fresh)).toMatchObject({ state: "waiting" });
    const shown = JSON.parse((await run("waiting")).stdout) as object;
    expect(shown).toMatchObject({ merchantId, asset: chain.asset, receiver: fresh });
    const rejection = byOperator(subjectOf("reject destination"));
    expect(await decide(rejection)).toMatchObject({ code: 0, stdout: '{"ok":true,"detail":"rejected"}\n' });
    expect(countWaiting()).toBe(0);
    // From now on only an approval lets the receiver apply.
    expect((await claim(fresh))?.appliesAt).toBeGreaterThan(Date.now() + 10_000 * 24 * 3_600_000);
    expect(await decide(byOperator(subjectOf("approve destination")))).toMatchObject({ code: 0 });
    expect(await claim(fresh)).toMatchObject({ state: "applied" });
  });

  test("rejects a destination in a signer that is stopped, although its time has come meanwhile", async () => {
    const { running, start, claim, decide, setPaused, countWaiting } = await setUp({ hours: 0.001 });
    await setPaused(true);
    const waiting = await claim(fresh);
    await running.kill("SIGKILL");
    await waitFor(() => Date.now() > (waiting?.appliesAt ?? 0), { within: 10_000, what: "the period has ended" });
    expect(await decide(byOperator(subjectOf("reject destination")))).toMatchObject({ code: 0 });
    await setPaused(false);
    await start();
    expect(countWaiting()).toBe(0);
    expect(await claim(old)).toMatchObject({ state: "applied" });
  });

  test("revokes a merchant's key, which then approves nothing", async () => {
    const { report, claim, decide, countWaiting } = await setUp({ hours: 0.0003 });
    const leaked = makeApprovalKey();
    await report({ approvalKeys: [{ merchantId, publicKey: leaked.publicKey }] });
    await waitFor(() => countWaiting() === 0, { within: 10_000, what: "the key counts" });
    const revocation = { action: "revoke approval key", merchantId, publicKey: leaked.publicKey } as const;
    await claim(fresh);
    const approval = signStatement(leaked, subjectOf("approve destination"), { deployment });
    const decided = await decide(byOperator(revocation), approval);
    expect(decided).toMatchObject({ code: 1 });
    expect(decided.stdout.split("\n").slice(0, 2)).toEqual([
      '{"ok":true,"detail":"revoked"}',
      '{"ok":false,"detail":"the key is revoked"}',
    ]);
  });

  test("decides nothing without a valid signature, and a file without statements is refused", async () => {
    const { claim, decide, run, file } = await setUp();
    await claim(fresh);
    const forged = signStatement(makeApprovalKey(), subjectOf("approve destination"), { signer: "ana", deployment });
    expect(await decide(forged)).toMatchObject({ code: 1, stdout: expect.stringContaining("not valid") });
    await writeFile(file("other.json"), "{}");
    expect(await run("decide", file("other.json"))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("neither a signed statement"),
    });
    expect(await claim(fresh)).toMatchObject({ state: "waiting" });
  });

  test("is made by the command line without the database", async () => {
    const { claim, run, file, countWaiting } = await setUp();
    await claim(fresh);
    const key = operator.privateKey.export({ type: "pkcs8", format: "pem" });
    await writeFile(file("ana.key"), key);
    const of = ["--merchant", merchantId, "--asset", chain.asset, "--receiver", fresh];
    const admin = adminIn({ DATABASE_URL: "postgres://127.0.0.1:1/none", NETWORKS_FILE: networksFile });
    const signed = await admin("statements", "reject-destination", ...of, "--sign", file("ana.key"), "--as", "ana");
    expect(signed).toMatchObject({ code: 0 });
    await writeFile(file("rejection.json"), signed.stdout);
    expect(await run("decide", file("rejection.json"))).toMatchObject({ code: 0 });
    expect(countWaiting()).toBe(0);
  });
});

describe("the audit log of the process", () => {
  test("names the operator of a decision, and is verified on the signer's machine", async () => {
    const { claim, decide, run, file } = await setUp();
    await claim(fresh);
    await decide(byOperator(subjectOf("reject destination")));
    const { stdout } = await run("audit", "list");
    const entries = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, string>);
    expect(entries.map(({ actor_id, action }) => `${actor_id} ${action}`)).toEqual([
      expect.stringMatching(/^uid \d+ store\.created$/),
      "signer limits_file.valid",
      "socket destination.claimed",
      "socket destination.claimed",
      "socket destination.served",
      "ana destination.rejected",
    ]);
    const [head] = entries.slice(-1);
    expect(await run("audit", "verify")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(head?.["hash"] ?? ""),
    });
    // Someone with the store's file takes the rejection back.
    const store = new DatabaseSync(file("signer.sqlite"));
    store.exec("drop trigger destination_event_no_delete; delete from destination_event");
    store.close();
    expect(await run("audit", "verify")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("row destination_event/1: missing"),
    });
  });

  test("is compared with the heads that the sink has", async () => {
    const { run, file } = await setUp();
    const { day } = JSON.parse((await run("audit", "list")).stdout.split("\n")[0] ?? "") as { day: string };
    await writeFile(
      file("heads.jsonl"),
      `${JSON.stringify({ log: "signer", day, sequence: 9, hash: "0".repeat(64) })}\n`,
    );
    expect(await run("audit", "verify", "--heads", file("heads.jsonl"))).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`entry ${day}/9: missing`),
    });
  });
});

test("a claim whose time comes while the process is stopped for long waits for an hour after its start", async () => {
  const { claim, running, start, run, setPaused, file, countWaiting } = await setUp({ hours: 0.0003 });
  await setPaused(true);
  await claim(fresh);
  await running.kill("SIGKILL");
  await setPaused(false);
  const store = new DatabaseSync(file("signer.sqlite"));
  // As if the process had been stopped a day ago.
  store.exec(`update last_run set at = ${Date.now() - 24 * 3_600_000}`);
  store.close();
  const restarted = await start();
  expect(await claim(fresh)).toMatchObject({ state: "waiting" });
  const shown = JSON.parse((await run("waiting")).stdout) as { appliesAt: string; held: string };
  expect(shown.held).toBe("the signer was stopped");
  expect(Date.parse(shown.appliesAt)).toBeGreaterThan(Date.now() + 50 * 60_000);
  await waitFor(async () => sumOf(await scrape(restarted.metricsUrl), "pay_signer_claims_held") === 1, {
    within: 10_000,
    what: "the claim is held",
  });
  expect(countWaiting()).toBe(1);
});

test("a claim whose time comes while the process is paused applies when the pause ends, and not before", async () => {
  const { claim, setPaused, countWaiting } = await setUp({ hours: 0.0003 });
  await setPaused(true);
  const waiting = await claim(fresh);
  expect(waiting).toMatchObject({ state: "waiting" });
  await waitFor(() => Date.now() > (waiting?.appliesAt ?? 0), { within: 10_000, what: "the period has ended" });
  expect(await claim(fresh)).toMatchObject({ state: "waiting" });
  await setPaused(false);
  await waitFor(() => countWaiting() === 0, { within: 10_000, what: "the destination applies" });
  expect(await claim(fresh)).toMatchObject({ state: "applied" });
});

test.each([
  [["decide"], "expected a file"],
  [["decide", "/nowhere/decision.json"], "the file /nowhere/decision.json cannot be read (ENOENT)"],
  [["decide", import.meta.filename], `the file ${import.meta.filename} is not JSON`],
  [["withdraw", "/nowhere/withdrawal.json"], "the file /nowhere/withdrawal.json cannot be read (ENOENT)"],
  [["withdraw", import.meta.filename], `the file ${import.meta.filename} is not JSON`],
  [["audit", "verify", "--heads", "/nowhere/heads"], "the file /nowhere/heads cannot be read (ENOENT)"],
])("signer %j names the file that is wrong, and not the networks file", async (args, said) => {
  const { run } = await setUp();
  const { code, stderr } = await run(...args);
  expect(code).toBe(1);
  expect(stderr.trim().split("\n").at(-1)).toContain(said);
});
