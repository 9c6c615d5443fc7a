import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { encodeTransfer } from "../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../db/chain-families.ts";
import { newKey } from "../../../local/networks-document.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { correctLedger } from "../../../payments/accounting/corrections.ts";
import { reconcileChain } from "../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { createLog } from "../../../runtime/log.ts";
import { createSignerClient } from "../../../signer/client.ts";
import { createStore } from "../../../signer/store.ts";
import { toAuthorization } from "../../../transfers/evm/authorization-calls.ts";
import { adminIn } from "../../support/admin.ts";
import { allEntries } from "../../support/audited-changes.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { fundBuyer, networksFileFor, sendUsdc, startChain, transfersTo, usdcBalance } from "../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { spawnProcess } from "../../support/spawn-process.ts";
import { testActor } from "../../support/test-actor.ts";
import { testKeys } from "../../support/test-deps.ts";
import { limitsDocument } from "../../support/test-signer.ts";

/** Starts a shop whose signer is a process, with a networks file for its treasury and one for the treasury that follows. */
async function startShop() {
  const chain = await startChain();
  const folder = await makeScratch("lost-store");
  const next = newKey();
  const change = { treasury: { address: next.address, key: { env: "NEXT_TREASURY_KEY" } } };
  const store = join(folder, "signer.sqlite");
  const socketPath = join(folder, "signer.sock");
  const limits = join(folder, "limits.jsonc");
  await writeFile(limits, JSON.stringify(limitsDocument([chain.asset])));
  const nextEnv = { NEXT_TREASURY_KEY: next.privateKey };
  const base = {
    ...chain.keys.env,
    ...nextEnv,
    SIGNER_LISTEN: `unix:${socketPath}`,
    SIGNER_STORE: store,
    SIGNER_LIMITS_FILE: limits,
  };
  const old = { ...base, NETWORKS_FILE: await networksFileFor(chain) };
  const present = { ...base, NETWORKS_FILE: await networksFileFor(chain, { change }) };
  const connect = () => {
    const signer = createSignerClient({ socketPath }, { log: createLog({ level: "silent", role: "test" }) });
    addCleanup(() => signer.close());
    return signer;
  };
  /** Runs `signer rebuild` with the networks file of the former treasury. */
  const rebuild = (...args: string[]) =>
    new Promise<{ code: number; output: string }>((resolve) => {
      const from = `${chain.id}=${chain.since}`;
      const all = ["signer/main.ts", "rebuild", "--from", from, ...args];
      execFile(process.execPath, all, { env: old }, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
      );
    });
  createStore(store).close();
  const start = (env: Record<string, string>) => spawnProcess({ role: "signer", env });
  const running = await start(old);
  const fixture = await makeMerchantFixture(chain, { signer: connect() });
  /** Kills the signer and deletes its file. */
  const lose = async () => {
    await running.kill("SIGKILL");
    for (const file of [store, `${store}-wal`, `${store}-shm`]) rmSync(file, { force: true });
  };
  /** Returns the workers of the present treasury. */
  const makeNext = () =>
    makeMerchantFixture(
      { ...chain, keys: { ...chain.keys, env: { ...chain.keys.env, ...nextEnv } } },
      {
        databaseUrl: fixture.databaseUrl,
        clock: fixture.clock,
        signer: connect(),
        change,
        merchant: fixture,
      },
    );
  const former = privateKeyToAccount(chain.keys.treasury.privateKey);
  return { chain, next, former, old, present, start, connect, rebuild, lose, fixture, makeNext };
}

/** Signs a payout of `cents` and does not send it. Returns its settlement, and the call with which anyone can make it. */
async function signUnsent(fixture: MerchantFixture, buyer: Parameters<MerchantFixture["pay"]>[0], cents: bigint) {
  const { id } = await fixture.settlementOf(await fixture.pay(buyer, cents));
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const row = (await fixture.transfers()).find(({ settlement_id }) => settlement_id === id);
  if (!row?.signature) throw new Error("the payout was not signed");
  const signature: Hex = `0x${row.signature.toString("hex")}`;
  return { id, call: encodeTransfer(toAuthorization(readEvmRow(row)), signature) };
}

describe("after the signer's process was killed and has lost its store", () => {
  test("a signed payout that was not sent is made once, although an attacker submits its signature as well", async () => {
    const { chain, next, former, old, present, start, connect, rebuild, lose, fixture, makeNext } = await startShop();
    const { id: made } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
    await fixture.settle(made);
    await fixture.relay();
    await fixture.watch();
    const { id: due } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 100n));
    const unsent = await signUnsent(fixture, await fundBuyer(chain), 200n);
    await lose();

    expect(await rebuild()).toMatchObject({ code: 1, output: expect.stringContaining("the store has no deposits") });
    const rebuilding = await start(old);
    expect(await fixture.settle(due)).toEqual(["rebuild_unfinished"]);
    expect(await claimAllDeposits({ db: fixture.db, signer: connect() })).toEqual({ verified: 3, refused: {} });
    await rebuilding.kill("SIGTERM");
    expect(await rebuild()).toMatchObject({
      code: 1,
      output: expect.stringContaining("the treasury holds 3000000 of"),
    });

    const hash = await sendUsdc(chain, former, next.address, 3_000_000n);
    await fixture.watch();
    const [left] = await listExceptions(fixture.deps, 10);
    unwrap(await bookException(fixture.deps, { actor: testActor, id: left?.id ?? 0, as: "cold", note: "store lost" }));
    expect(await rebuild()).toMatchObject({ code: 1, output: expect.stringContaining("belongs to no payout") });
    const { logs } = await chain.client.getTransactionReceipt({ hash });
    const accept = ["--accept", `${hash}/${logs[0]?.logIndex}`];
    expect(await rebuild(...accept)).toEqual({ code: 0, output: expect.stringContaining("2 payouts recorded") });
    const retired = await start(old);
    expect(await fixture.settle(due)).toEqual(["treasury_retired"]);
    await retired.kill("SIGTERM");

    await start(present);
    const workers = await makeNext();
    const moved = { debit: "treasury", credit: "cold", asset: chain.asset, amount: 3_000_000n };
    unwrap(
      await correctLedger(workers.deps, { actor: testActor, reference: "LOST-1", ...moved, note: "treasury replaced" }),
    );
    const admin = adminIn({
      DATABASE_URL: fixture.databaseUrl,
      ...testKeys,
      NETWORKS_FILE: present.NETWORKS_FILE,
      SIGNER: present.SIGNER_LISTEN,
      OPERATOR: "anna",
    });
    const renewed = await admin("payouts", "renew", "--json");
    expect({ ...renewed, stdout: JSON.parse(renewed.stdout) }).toMatchObject({
      code: 0,
      stdout: { renewed: 1, refused: {} },
    });
    expect(await allEntries(fixture.db)).toContainEqual(expect.objectContaining({ action: "payout.renewed" }));
    await workers.relay();
    await workers.watch();
    expect(await workers.settle(due)).toEqual(["begun"]);
    await workers.relay();
    await workers.watch();

    const attack = { to: chain.contracts.token, data: unsent.call, gas: 200_000n };
    const { status } = await chain.client.waitForTransactionReceipt({
      hash: await chain.client.sendTransaction(attack),
    });
    expect(status).toBe("reverted");
    await workers.watch();
    const paid = await transfersTo(chain, fixture.destination);
    expect(paid.map(({ args }) => args.value)).toEqual([3_000_000n, 2_000_000n, 1_000_000n]);
    expect(await usdcBalance(chain, next.address)).toBe(0n);
    const states = await fixture.db.selectFrom("settlement").select("state").execute();
    expect(states.map(({ state }) => state)).toEqual(["paid", "paid", "paid"]);
    const reconciled = await reconcileChain(workers.deps, { chain: chain.id });
    expect(reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n)).toEqual([]);
  }, 120_000);

  test("a payout that an attacker made with its old signature is not made again by the treasury that follows", async () => {
    const { chain, next, former, old, present, start, connect, rebuild, lose, fixture, makeNext } = await startShop();
    const unsent = await signUnsent(fixture, await fundBuyer(chain), 200n);
    await lose();
    await rebuild();
    const rebuilding = await start(old);
    await claimAllDeposits({ db: fixture.db, signer: connect() });
    await rebuilding.kill("SIGTERM");
    await chain.client.waitForTransactionReceipt({
      hash: await chain.client.sendTransaction({ to: chain.contracts.token, data: unsent.call, gas: 200_000n }),
    });
    expect(await rebuild()).toEqual({ code: 0, output: expect.stringContaining("1 payouts recorded") });

    await start(present);
    const workers = await makeNext();
    await sendUsdc(chain, await fundBuyer(chain), next.address, 2_000_000n);
    const admin = adminIn({
      DATABASE_URL: fixture.databaseUrl,
      ...testKeys,
      NETWORKS_FILE: present.NETWORKS_FILE,
      SIGNER: present.SIGNER_LISTEN,
      OPERATOR: "anna",
    });
    const renewed = await admin("payouts", "renew", "--json");
    expect({ ...renewed, stdout: JSON.parse(renewed.stdout) }).toMatchObject({
      code: 1,
      stdout: { renewed: 0, refused: { treasury_changed: 1 } },
    });
    await workers.relay();
    expect(await usdcBalance(chain, fixture.destination)).toBe(2_000_000n);
    expect(await usdcBalance(chain, former.address)).toBe(0n);
  }, 120_000);
});
