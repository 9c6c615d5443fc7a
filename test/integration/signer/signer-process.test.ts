import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Agent, request } from "undici";
import { describe, expect, test } from "vitest";
import { freePort } from "../../../local/free-ports.ts";
import { newKey } from "../../../local/networks-document.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { moveExcess } from "../../../payments/payouts/move-excess.ts";
import { readWorkerConfig } from "../../../runtime/config.ts";
import { createLog } from "../../../runtime/log.ts";
import { createSignerClient } from "../../../signer/client.ts";
import { openSigner } from "../../../signer/open-signer.ts";
import type { TreasurySigner } from "../../../signer/treasury-signer.ts";
import { addCleanup } from "../../support/cleanups.ts";
import {
  fundBuyer,
  networksFileFor,
  startChain,
  type TestChain,
  transfersTo,
  usdcBalance,
} from "../../support/evm-chain.ts";
import { startKms } from "../../support/fake-kms.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { runProgram } from "../../support/run-program.ts";
import { makeCertificates } from "../../support/signer-certificates.ts";
import { type SpawnedProcess, spawnProcess, spawnUnready } from "../../support/spawn-process.ts";
import { testKeys } from "../../support/test-deps.ts";
import { limitsDocument } from "../../support/test-signer.ts";
import { waitFor } from "../../support/wait-for.ts";

const chain = await startChain();
const log = createLog({ level: "silent", role: "test" });
const certificates = await makeCertificates();
/** Makes the key service answer none of its next ten calls: a signer repeats an unanswered call until it is killed. */
const silence = Array.from({ length: 10 }, () => ({ status: 0, name: "silent" }));

/** Returns the environment of a signer's process with a store of its own. `limited` changes the limits of its asset. */
async function environment(
  { limited, ...options }: Parameters<typeof networksFileFor>[1] & { limited?: object } = {},
  own = chain,
): Promise<Record<string, string>> {
  const folder = await makeScratch("signer-process");
  const limits = join(folder, "limits.jsonc");
  await writeFile(limits, JSON.stringify(limitsDocument([own.asset], limited ? { asset: limited } : {})));
  return {
    ...own.keys.env,
    NETWORKS_FILE: await networksFileFor(own, options),
    SIGNER_LISTEN: `unix:${join(folder, "signer.sock")}`,
    SIGNER_STORE: join(folder, "signer.sqlite"),
    SIGNER_LIMITS_FILE: limits,
  };
}

/** Starts a fake KMS with the treasury's key, and returns the environment of a signer that signs with it. */
async function withKms(own: TestChain, limited?: object) {
  const kms = await startKms(own.keys.treasury.privateKey);
  const key = { awsKms: { keyId: "alias/treasury", region: "eu-central-1", endpoint: kms.url } };
  const treasury = { address: own.keys.treasury.address, key };
  const credentials = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test", AWS_REGION: "eu-central-1" };
  const made = await environment({ change: { treasury }, ...(limited ? { limited } : {}) }, own);
  const env: Record<string, string> = { ...made, ...credentials };
  return { kms, env };
}

/** Runs `signer init`. Returns its exit code. */
async function initStore(env: Record<string, string>): Promise<number> {
  return (await runProgram("signer", ["init"], env)).code;
}

async function startSigner(env: Record<string, string>): Promise<SpawnedProcess> {
  await initStore(env);
  return spawnProcess({ role: "signer", env });
}

/** Opens a worker's connection, by the worker's own environment. */
function connect(env: Record<string, string>): TreasurySigner {
  const worker = readWorkerConfig({
    DATABASE_URL: "postgres://127.0.0.1/none",
    REDIS_URL: "redis://127.0.0.1",
    NETWORKS_FILE: "none",
    ...testKeys,
    ...env,
  });
  const signer = openSigner(worker, { treasuryKeys: new Map(), chains: new Map(), deployment: "test", log });
  addCleanup(() => signer.close());
  return signer;
}

const claim = {
  asset: chain.asset,
  merchantId: "mrch_1",
  paymentId: "pay_1",
  txHash: `0x${"ab".repeat(32)}`,
  logIndex: 0,
};
const socketOf = (env: Record<string, string>) => (env["SIGNER_LISTEN"] ?? "").slice("unix:".length);

describe("the signer's process", () => {
  test("starts only with a store that was created before", async () => {
    const env = await environment();
    const started = await spawnUnready({ role: "signer", env });
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toContain("does not exist: create it with `signer init`");
    expect(await initStore(env)).toBe(0);
    await spawnProcess({ role: "signer", env });
  });

  test("goes on when its store cannot be written, and logs why", async () => {
    const env = await environment();
    const running = await startSigner(env);
    const store = new DatabaseSync(env["SIGNER_STORE"] ?? "");
    addCleanup(() => store.close());
    const full = "database or disk is full";
    // As on a full disk, SQLite ends the transaction itself.
    store.exec(`create trigger full before update on last_run begin select raise(rollback, '${full}'); end`);
    const failed = () => running.records().filter(({ step }) => step === "claims");
    await waitFor(() => failed().length > 0, { within: 30_000, what: "the signer has noted that it runs" });
    store.exec("drop trigger full");
    expect(failed()).toMatchObject([{ err: { message: full } }]);
    const noted = () => store.prepare("select at from last_run").get()?.["at"];
    const before = noted();
    await waitFor(() => noted() !== before, { within: 30_000, what: "the signer notes again that it runs" });
    expect(await connect({ SIGNER: env["SIGNER_LISTEN"] ?? "" }).claimDeposits([claim])).toMatchObject([
      { ok: false, reason: "deposit_not_found" },
    ]);
  });

  test("a worker reaches it through a Unix socket that only its user can open", async () => {
    const env = await environment();
    await startSigner(env);
    const socket = socketOf(env);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(await connect({ SIGNER: `unix:${socket}` }).claimDeposits([claim])).toMatchObject([
      { ok: false, reason: "deposit_not_found" },
    ]);
  });

  test.runIf(process.getuid?.() === 0)("another user's process is refused on the socket", async () => {
    const env = await environment();
    await startSigner(env);
    const script = `require("net").connect(${JSON.stringify(socketOf(env))}).on("error", (e) => { console.log(e.code); process.exit(3) }).on("connect", () => process.exit(0))`;
    const child = spawn(process.execPath, ["-e", script], { uid: 65_534, gid: 65_534 });
    const [code] = (await once(child, "exit")) as [number | null];
    expect(code).toBe(3);
  });

  test("over TLS it answers only clients with a certificate of its CA", async () => {
    const port = await freePort();
    const url = `https://127.0.0.1:${port}`;
    const made = await environment();
    await startSigner({ ...made, SIGNER_LISTEN: url, ...(await certificates.issue("signer")) });

    const worker = connect({ SIGNER: url, ...(await certificates.issue("worker")) });
    expect(await worker.claimDeposits([claim])).toMatchObject([{ ok: false, reason: "deposit_not_found" }]);
    await worker.claimDestinations({
      destinations: [
        {
          merchantId: claim.merchantId,
          asset: claim.asset,
          receiver: chain.keys.treasury.address,
          state: "applied",
        },
      ],
      statements: [],
      approvalKeys: [],
      revokedKeys: [],
    });
    const store = new DatabaseSync(made["SIGNER_STORE"] ?? "", { readOnly: true });
    addCleanup(() => store.close());
    const claimed = store.prepare("select actor_kind, actor_id from audit_entry where action = 'destination.claimed'");
    expect(claimed.get()).toEqual({ actor_kind: "worker", actor_id: "worker" });

    const other = await (await makeCertificates()).issue("stranger");
    const read = (name: string) => readFileSync(other[name] ?? "");
    const [cert, key] = [read("SIGNER_CERT_FILE"), read("SIGNER_KEY_FILE")];
    const readCertificates = () => ({ ca: Buffer.from(certificates.ca), cert, key });
    const strange = createSignerClient({ url, readCertificates }, { log });
    addCleanup(() => strange.close());
    expect(await strange.claimDeposits([claim])).toMatchObject([{ ok: false, reason: "signer_unavailable" }]);

    const dispatcher = new Agent({ connect: { ca: certificates.ca } });
    addCleanup(() => dispatcher.destroy());
    await expect(request(`${url}/v1/status`, { dispatcher })).rejects.toThrow();
  });

  test("certificates that are renewed on disk apply on both sides without a restart", async () => {
    const url = `https://127.0.0.1:${await freePort()}`;
    const [former, other] = [await makeCertificates(), await makeCertificates()];
    const [server, client] = [await former.issue("signer"), await former.issue("worker")];
    const running = await startSigner({ ...(await environment()), SIGNER_LISTEN: url, ...server });
    // It reads its certificates now, and connects for the first time after both sides have new ones.
    const early = connect({ SIGNER: url, ...client });
    const ask = async (by = connect({ SIGNER: url, ...client })) => {
      const [result] = await by.claimDeposits([claim]);
      return result?.ok === false ? result.reason : result;
    };
    expect(await ask()).toBe("deposit_not_found");

    const renew = async (mine: Record<string, string>, name: string) => {
      const issued = await other.issue(name);
      for (const [variable, file] of Object.entries(mine)) await copyFile(issued[variable] ?? "", file);
    };
    // The CA is one file of both sides.
    await renew(server, "signer");
    expect(await ask()).toBe("signer_unavailable");
    await renew(client, "worker");
    expect(await ask(early)).toBe("deposit_not_found");
    expect(running.records().some(({ msg }) => msg === "renewed certificates are used")).toBe(true);
  });

  test("a request with an unknown member is refused", async () => {
    const env = await environment();
    await startSigner(env);
    const signer = connect({ SIGNER: env["SIGNER_LISTEN"] ?? "" });
    expect(await signer.claimDeposits([{ ...claim, approved: true } as typeof claim])).toMatchObject([
      { ok: false, reason: "invalid_request" },
    ]);
  });

  test("killed after it has recorded a payout and before it has answered, it makes one payout", async () => {
    const { kms, env } = await withKms(chain);
    const running = await startSigner(env);
    const fixture = await makeMerchantFixture(chain, { signer: connect({ SIGNER: env["SIGNER_LISTEN"] ?? "" }) });
    const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));

    kms.failNext(silence);
    const settling = fixture.settle(id);
    const store = new DatabaseSync(env["SIGNER_STORE"] ?? "", { readOnly: true });
    addCleanup(() => store.close());
    const payouts = () => store.prepare("select amount, counted from payout").all();
    await waitFor(() => payouts().length === 1, { within: 10_000, what: "the payout is recorded" });
    await running.kill("SIGKILL");
    kms.failNext([]);
    expect(await settling).toEqual(["signer_unavailable"]);

    await spawnProcess({ role: "signer", env });
    expect(await fixture.settle(id)).toEqual(["begun"]);
    await fixture.relay();
    await fixture.watch();
    expect(payouts()).toHaveLength(1);
    expect(await transfersTo(chain, fixture.destination)).toHaveLength(1);
  });

  test("killed between the record and the signature of a transfer to the cold address, it makes that transfer once", async () => {
    const own = await startChain();
    const cold = newKey().address;
    const hotBalance = { floor: "1000000", ceiling: "2000000", cold: { address: cold, target: "1000000" } };
    const { kms, env } = await withKms(own, { hotBalance });
    const running = await startSigner(env);
    const fixture = await makeMerchantFixture(own, { signer: connect({ SIGNER: env["SIGNER_LISTEN"] ?? "" }) });
    await fixture.pay(await fundBuyer(own), 900n);
    kms.failNext(silence);
    const moving = moveExcess(fixture.deps, own.id);
    const store = new DatabaseSync(env["SIGNER_STORE"] ?? "", { readOnly: true });
    addCleanup(() => store.close());
    const recorded = () => store.prepare("select number, amount from cold_transfer").all();
    await waitFor(() => recorded().length === 1, { within: 10_000, what: "the transfer is recorded" });
    await running.kill("SIGKILL");
    kms.failNext([]);
    await moving;
    expect(await fixture.transfers()).toMatchObject([{ purpose: "payment" }]);

    await spawnProcess({ role: "signer", env });
    // More has come meanwhile: the recorded transfer keeps its amount, and the rest moves with the next one.
    await fixture.pay(await fundBuyer(own), 100n);
    await Promise.all([moveExcess(fixture.deps, own.id), moveExcess(fixture.deps, own.id)]);
    await fixture.relay();
    await fixture.watch();
    expect(recorded()).toEqual([{ number: 1, amount: "8000000" }]);
    expect(await transfersTo(own, cold)).toMatchObject([{ args: { value: 8_000_000n } }]);
    expect(await usdcBalance(own, own.keys.treasury.address)).toBe(2_000_000n);
  });

  test("signs and believes nothing of a chain that does not match its networks file", async () => {
    const env = await environment({ change: { multicall: newKey().address } });
    const running = await startSigner(env);
    const signer = connect({ SIGNER: env["SIGNER_LISTEN"] ?? "" });
    const fixture = await makeMerchantFixture(chain, { signer });
    const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
    expect(await fixture.settle(id)).toEqual(["chain_mismatch"]);
    expect(await signer.claimDeposits([claim])).toMatchObject([{ ok: false, reason: "chain_mismatch" }]);
    const metrics = await (await request(running.metricsUrl)).body.text();
    expect(metrics).toMatch(/pay_signer_refusals_total\{[^}]*reason="chain_mismatch"[^}]*\} 1/);
    const store = new DatabaseSync(env["SIGNER_STORE"] ?? "", { readOnly: true });
    addCleanup(() => store.close());
    expect(store.prepare("select count(*) as rows from payout").get()).toEqual({ rows: 0 });
  });
});
