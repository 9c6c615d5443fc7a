import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { createLog } from "../../../runtime/log.ts";
import { listWaitingKeys } from "../../../signer/approval-keys.ts";
import { createSignerClient } from "../../../signer/client.ts";
import { listWaiting } from "../../../signer/destinations.ts";
import type { DestinationsRequest, Statement } from "../../../signer/protocol.ts";
import type { StatementSubject } from "../../../signer/statements.ts";
import { createStore } from "../../../signer/store.ts";
import { adminIn } from "../../support/admin.ts";
import { makeApprovalKey, signStatement } from "../../support/approval-key.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { networksFileFor, networksFor, startChain } from "../../support/evm-chain.ts";
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
  const run = async (...args: string[]) => {
    const child = spawn(process.execPath, ["signer/main.ts", ...args], { env });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    return { code: Number(code), stdout, stderr };
  };
  const store = createStore(env.SIGNER_STORE);
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
    (await report({ destinations: [{ merchantId, asset: chain.asset, receiver }] })).destinations[0];
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
