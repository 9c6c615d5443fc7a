import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { nativeAsset } from "../../../../chains/canonical-ids.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { listDifferences } from "../../../../db/queries/reconciliations.ts";
import { correctLedger } from "../../../../payments/accounting/corrections.ts";
import { reconcileChain, takeReconciliations } from "../../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { builtService } from "../../../support/built-service.ts";
import { inRole } from "../../../support/database-roles.ts";
import { fundBuyer, networksFileFor, sendUsdc, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const differences = async (fixture: MerchantFixture, chain: TestChain, block?: number) =>
  unwrap(await reconcileChain(fixture.deps, { chain: chain.id, block })).filter(({ difference }) => difference !== 0n);
async function settle(fixture: MerchantFixture, paymentId: string) {
  await fixture.settle((await fixture.settlementOf(paymentId)).id);
  await fixture.relay();
  await fixture.watch();
}

const steal = async (chain: TestChain, amount: bigint) =>
  sendUsdc(chain, privateKeyToAccount(chain.keys.treasury.privateKey), (await fundBuyer(chain)).address, amount);

test("the ledger matches the chain after payments, payouts and gas at every block that was read", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const lines = unwrap(await reconcileChain(fixture.deps, { chain: chain.id }));
  expect(lines.map(({ account }) => account).sort()).toEqual(
    ["treasury", ...chain.keys.lanes.map(({ address }) => `lane:${address.toLowerCase()}`)].sort(),
  );
  const first = (await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow()).number;
  for (let round = 0; round < 3; round += 1) await settle(fixture, await fixture.pay(await fundBuyer(chain), 250n));
  await fixture.pay(await fundBuyer(chain), 700n);
  expect(await differences(fixture, chain)).toEqual([]);
  const last = (await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow()).number;
  expect(last).toBeGreaterThan(first + 5);
  for (let block = first; block <= last; block += 1)
    expect([block, await differences(fixture, chain, block)]).toEqual([block, []]);
  expect(await reconcileChain(fixture.deps, { chain: chain.id, block: last + 1 })).toMatchObject({
    code: "invalid_state",
  });
});

test("a transfer out of the treasury that the service did not make is a mismatch until an operator books it", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  await fixture.pay(await fundBuyer(chain), 500n);
  await steal(chain, 2_000_000n);
  await fixture.watch();
  const found = {
    account: "treasury",
    asset: chain.asset,
    booked: 5_000_000n,
    held: 3_000_000n,
    difference: -2_000_000n,
  };
  expect(await differences(fixture, chain)).toMatchObject([found]);
  expect(
    fixture.lines.some((text) => text.includes("ledger does not match the chain") && text.includes("-2000000")),
  ).toBe(true);
  expect(await listDifferences(fixture.db)).toContainEqual(
    expect.objectContaining({ chain: chain.id, asset: chain.asset, difference: 2_000_000n }),
  );
  const [exception] = await listExceptions(fixture.deps, 10);
  unwrap(await bookException(fixture.deps, { actor: testActor, id: exception?.id ?? 0, as: "losses", note: "stolen" }));
  expect(await differences(fixture, chain)).toEqual([]);
});

test("money that is observed but not final is not a mismatch", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 50 } } });
  await fixture.pay(await fundBuyer(chain), 500n);
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 7n);
  await fixture.watch();
  const { number: block } = await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow();
  const lines = unwrap(await reconcileChain(fixture.deps, { chain: chain.id, block }));
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
  expect(lines[0]).toMatchObject({ account: "treasury", booked: 0n, inFlight: 5_000_007n, held: 5_000_007n });
});

test("a lane that receives gas money is not a mismatch, and a lane that loses some is", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  await fixture.pay(await fundBuyer(chain));
  expect(await differences(fixture, chain)).toEqual([]);
  const address = chain.keys.lanes[0]?.address ?? "0x";
  const changeBalance = async (by: bigint) => {
    await chain.client.setBalance({ address, value: (await chain.client.getBalance({ address })) + by });
    await chain.client.mine({ blocks: 1 });
    await fixture.watch();
  };
  const capital = async () => (await listBalances(fixture.db, { account: "operator_capital" }))[0]?.amount ?? 0n;
  const before = await capital();
  await changeBalance(10n ** 18n);
  const runs = await Promise.all([1, 2, 3].map(() => differences(fixture, chain)));
  expect(runs).toEqual([[], [], []]);
  expect(before - (await capital())).toBe(10n ** 18n);
  await changeBalance(-5n);
  expect(await differences(fixture, chain)).toMatchObject([
    { account: `lane:${address.toLowerCase()}`, difference: -5n },
  ]);
});

test("what a lane's key sends without us stays unexplained after a refill, until an operator books it", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  await fixture.pay(await fundBuyer(chain));
  expect(await differences(fixture, chain)).toEqual([]);
  // A drained lane has unfinished transactions until it is refilled: nodes keep them, and no block includes them.
  const [pending] = await fixture.db.selectFrom("transaction").selectAll().orderBy("nonce", "desc").limit(1).execute();
  if (!pending) throw new Error("the lane has sent nothing");
  const {
    block_number: _,
    block_id: _id,
    gas_used: _used,
    gas_price: _price,
    fee: _fee,
    reverted: _not,
    ...sent
  } = pending;
  const stuck = { ...sent, nonce: sent.nonce + 1, hash: `0x${"ab".repeat(32)}`, state: "signed" as const };
  await fixture.db.insertInto("transaction").values(stuck).execute();
  const [lane] = chain.keys.lanes;
  if (!lane) throw new Error("the chain has no lane");
  const { address } = lane;
  const held = await chain.client.getBalance({ address });
  // Signed outside of the service, with the lane's key.
  const account = privateKeyToAccount(lane.privateKey);
  const request = { to: (await fundBuyer(chain)).address, value: 10n ** 17n, gas: 21_000n, gasPrice: 10n ** 10n };
  const nonce = await chain.client.getTransactionCount({ address });
  const chainId = await chain.client.getChainId();
  const bytes = await account.signTransaction({ ...request, nonce, chainId, type: "legacy" });
  await chain.client.sendRawTransaction({ serializedTransaction: bytes });
  await chain.client.mine({ blocks: 1 });
  await fixture.watch();
  const lost = held - (await chain.client.getBalance({ address }));
  expect(lost).toBeGreaterThan(10n ** 17n);
  const missing = { account: `lane:${address.toLowerCase()}`, difference: -lost };
  const capital = async () => (await listBalances(fixture.db, { account: "operator_capital" }))[0]?.amount ?? 0n;
  const before = await capital();
  // A restored database has forgotten transactions, whose fees are booked when the chain has been read again.
  const setUnread = (height: number | null) =>
    fixture.db.updateTable("chain_cursor").set({ epoch_height: height }).where("chain", "=", chain.id).execute();
  await setUnread(1);
  expect(await differences(fixture, chain)).toMatchObject([missing]);
  expect(await listExceptions(fixture.deps, 10)).toEqual([]);
  await setUnread(null);
  for (let run = 0; run < 2; run += 1) expect(await differences(fixture, chain)).toMatchObject([missing]);
  const correction = { reference: "ticket", debit: "losses", credit: missing.account, asset: nativeAsset(chain.id) };
  const booked = await correctLedger(fixture.deps, { ...correction, amount: lost, note: "fees", actor: testActor });
  expect(booked).toMatchObject({ code: "invalid_state" });

  await chain.client.setBalance({ address, value: held + 10n ** 18n });
  await chain.client.mine({ blocks: 1 });
  await fixture.watch();
  expect(await differences(fixture, chain)).toMatchObject([missing]);
  expect(before - (await capital())).toBe(lost + 10n ** 18n);
  const [exception, ...others] = await listExceptions(fixture.deps, 10);
  expect([exception, others]).toMatchObject([{ kind: "left", amount: -lost, chain: chain.id }, []]);
  unwrap(await bookException(fixture.deps, { actor: testActor, id: exception?.id ?? 0, as: "losses", note: "stolen" }));
  expect(await differences(fixture, chain)).toEqual([]);
});

test("money that moved in unread blocks is a mismatch with its account, asset and amount", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 2 } } });
  await fixture.pay(await fundBuyer(chain), 500n);
  await chain.client.mine({ blocks: 1 });
  await fixture.watch();
  expect(await differences(fixture, chain)).toEqual([]);
  await steal(chain, 2_000_000n);
  const block = Number(await chain.client.getBlockNumber());
  const { hash } = await chain.client.getBlock({ blockNumber: BigInt(block) });
  await fixture.db.updateTable("chain_cursor").set({ number: block, block_id: hash, final_number: block }).execute();
  const [line, ...others] = await differences(fixture, chain);
  expect(others).toEqual([]);
  expect(line).toMatchObject({
    account: "treasury",
    asset: chain.asset,
    block,
    booked: 5_000_000n,
    held: 3_000_000n,
    difference: -2_000_000n,
  });
});

test("npm run reconcile prints a table and exits with 0, or with 1 and the mismatch", {
  // Each call starts a process that loads the whole service.
  timeout: 600_000,
}, async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  await settle(fixture, await fixture.pay(await fundBuyer(chain), 500n));
  await fixture.pay(await fundBuyer(chain), 300n);
  const env = await inRole("admin", {
    DATABASE_URL: fixture.databaseUrl,
    NETWORKS_FILE: await networksFileFor(chain),
  });
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, [`${builtService}/reconcile.js`, ...args], { env }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
    );
  const fine = await run();
  expect(fine).toMatchObject({ code: 0, stderr: "" });
  for (const part of ["treasury", chain.asset, "3000000", "lane:0x"]) expect(fine.stdout).toContain(part);
  await steal(chain, 1n);
  await fixture.watch();
  const bad = await run("--json");
  expect(bad.code).toBe(1);
  expect(JSON.parse(bad.stdout).lines).toContainEqual(
    expect.objectContaining({
      account: "treasury",
      asset: chain.asset,
      booked: "3000000",
      held: "2999999",
      difference: "-1",
    }),
  );
  // A payout to a stranger, written into the database without a payment behind it.
  const id = "mrch_thief";
  await execute(
    fixture.databaseUrl,
    `insert into merchant (id, account_id, mode, name, email, created_at)
      values ('${id}', '${fixture.accountId}', 'live', 'Thief', 'thief@example.test', now())`,
    `insert into settlement_destination (id, merchant_id, asset, destination, created_at, updated_at)
      values ('crypto_thief', '${id}', '${chain.asset}', '${chain.id}:${(await fundBuyer(chain)).address}', now(), now())`,
    `insert into merchant_balance (merchant_id, asset, amount) values ('${id}', '${chain.asset}', 5000000)`,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
      values ('stl_thief', '${id}', 'live', '${chain.asset}', 1, 5000000, 'due', now(), now())`,
  );
  const planted = await run();
  expect(planted.code).toBe(1);
  expect(planted.stdout).toContain(`balance_differs  ${id}  ${chain.asset}  found 5000000  expected 0\n`);
  expect(planted.stdout).toContain(
    `settlement_without_payments  stl_thief  ${chain.asset}  found 5000000  expected 0\n`,
  );
  expect(await run("--chain", chain.id, "--block", String(Number(chain.since)))).toMatchObject({ code: 0 });
  expect(await run("--chain", "eip155:5")).toMatchObject({ code: 2 });
  expect(await run("--block", "5")).toMatchObject({ code: 2 });
  expect(await run("--blocks", "5")).toMatchObject({ code: 2 });
  await execute(fixture.databaseUrl, "insert into kysely_migration (name, timestamp) values ('0003_later', 'now')");
  const refused = await run();
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("the database has schema version 3, and this release works with 1 and 2");
});

test("one process at a time reconciles a chain, every five minutes", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const taken = async () =>
    (await Promise.all(Array.from({ length: 5 }, () => takeReconciliations(fixture.deps)))).flat();
  fixture.clock.advance(1_000);
  expect(await taken()).toEqual([chain.id]);
  expect(await taken()).toEqual([]);
  fixture.clock.advance(300_000);
  expect(await taken()).toEqual([chain.id]);
});
