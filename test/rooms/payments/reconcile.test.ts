import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { listBalances } from "../../../db/balances.ts";
import { listDifferences } from "../../../db/reconciliations.ts";
import { bookException, listExceptions } from "../../../payments/exceptions.ts";
import { reconcileChain, takeReconciliations } from "../../../payments/reconcile.ts";
import { fundBuyer, networksFileFor, sendUsdc, startChain, type TestChain } from "../../support/chain.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const differences = async (till: Till, chain: TestChain, block?: number) =>
  good(await reconcileChain(till.deps, { chain: chain.id, block })).filter(({ difference }) => difference !== 0n);
async function settle(till: Till, paymentId: string) {
  await till.settle((await till.settlementOf(paymentId)).id);
  await till.relay();
  await till.watch();
}

const rob = async (chain: TestChain, amount: bigint) =>
  sendUsdc(chain, privateKeyToAccount(chain.keys.treasury.privateKey), (await fundBuyer(chain)).address, amount);

test("books and chain agree after payments, payouts and gas, at every block that was read", async () => {
  const chain = await startChain({ lanes: 2 });
  const till = await makeTill(chain);
  const lines = good(await reconcileChain(till.deps, { chain: chain.id }));
  expect(lines.map(({ account }) => account).sort()).toEqual(
    ["treasury", ...chain.keys.lanes.map(({ address }) => `lane:${address.toLowerCase()}`)].sort(),
  );
  const first = (await till.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow()).number;
  for (let round = 0; round < 3; round += 1) await settle(till, await till.pay(await fundBuyer(chain), 250n));
  await till.pay(await fundBuyer(chain), 700n);
  expect(await differences(till, chain)).toEqual([]);
  const last = (await till.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow()).number;
  expect(last).toBeGreaterThan(first + 5);
  for (let block = first; block <= last; block += 1)
    expect([block, await differences(till, chain, block)]).toEqual([block, []]);
  expect(await reconcileChain(till.deps, { chain: chain.id, block: last + 1 })).toMatchObject({
    code: "invalid_state",
  });
});

test("a transfer out of the treasury behind our back is found and named, until somebody says why it went", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  await till.pay(await fundBuyer(chain), 500n);
  await rob(chain, 2_000_000n);
  await till.watch();
  const found = {
    account: "treasury",
    asset: chain.asset,
    booked: 5_000_000n,
    held: 3_000_000n,
    difference: -2_000_000n,
  };
  expect(await differences(till, chain)).toMatchObject([found]);
  expect(till.lines.some((text) => text.includes("ledger does not match the chain") && text.includes("-2000000"))).toBe(
    true,
  );
  expect(await listDifferences(till.db)).toContainEqual(
    expect.objectContaining({ chain: chain.id, asset: chain.asset, difference: 2_000_000n }),
  );
  const [exception] = await listExceptions(till.deps, 10);
  good(await bookException(till.deps, { id: exception?.id ?? 0, as: "losses", note: "stolen" }));
  expect(await differences(till, chain)).toEqual([]);
});

test("money that is on its way, seen and not final yet, is no difference", async () => {
  const chain = await startChain();
  const till = await makeTill(chain, { change: { finality: { blocks: 50 } } });
  await till.pay(await fundBuyer(chain), 500n);
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 7n);
  await till.watch();
  const { number: block } = await till.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow();
  const lines = good(await reconcileChain(till.deps, { chain: chain.id, block }));
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
  expect(lines[0]).toMatchObject({ account: "treasury", booked: 0n, inFlight: 5_000_007n, held: 5_000_007n });
});

test("a lane that is given gas money is no difference, one that loses some is", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  await till.pay(await fundBuyer(chain));
  expect(await differences(till, chain)).toEqual([]);
  const address = chain.keys.lanes[0]?.address ?? "0x";
  const give = async (by: bigint) => {
    await chain.client.setBalance({ address, value: (await chain.client.getBalance({ address })) + by });
    await chain.client.mine({ blocks: 1 });
    await till.watch();
  };
  const capital = async () => (await listBalances(till.db, { account: "operator_capital" }))[0]?.amount ?? 0n;
  const before = await capital();
  await give(10n ** 18n);
  const runs = await Promise.all([1, 2, 3].map(() => differences(till, chain)));
  expect(runs).toEqual([[], [], []]);
  expect(before - (await capital())).toBe(10n ** 18n);
  await give(-5n);
  expect(await differences(till, chain)).toMatchObject([{ account: `lane:${address.toLowerCase()}`, difference: -5n }]);
});

test("money that moved while nobody watched is a difference, with the account, the asset and how much", async () => {
  const chain = await startChain();
  const till = await makeTill(chain, { change: { finality: { blocks: 2 } } });
  await till.pay(await fundBuyer(chain), 500n);
  await chain.client.mine({ blocks: 1 });
  await till.watch();
  expect(await differences(till, chain)).toEqual([]);
  await rob(chain, 2_000_000n);
  const block = Number(await chain.client.getBlockNumber());
  const { hash } = await chain.client.getBlock({ blockNumber: BigInt(block) });
  await till.db.updateTable("chain_cursor").set({ number: block, hash, final_number: block }).execute();
  const [line, ...others] = await differences(till, chain);
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

test("npm run reconcile prints a table and ends with 0, and with 1 and the difference when there is one", {
  // Each call is a process that loads everything.
  timeout: 180_000,
}, async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  await settle(till, await till.pay(await fundBuyer(chain), 500n));
  await till.pay(await fundBuyer(chain), 300n);
  const env = { DATABASE_URL: till.databaseUrl, NETWORKS_FILE: await networksFileFor(chain) };
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, ["ops/reconcile/main.ts", ...args], { env }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
    );
  const fine = await run();
  expect(fine).toMatchObject({ code: 0, stderr: "" });
  for (const part of ["treasury", chain.asset, "3000000", "lane:0x"]) expect(fine.stdout).toContain(part);
  await rob(chain, 1n);
  await till.watch();
  const bad = await run("--json");
  expect(bad.code).toBe(1);
  expect(JSON.parse(bad.stdout)).toContainEqual(
    expect.objectContaining({
      account: "treasury",
      asset: chain.asset,
      booked: "3000000",
      held: "2999999",
      difference: "-1",
    }),
  );
  expect(await run("--chain", chain.id, "--block", String(Number(chain.since)))).toMatchObject({ code: 0 });
  expect(await run("--chain", "eip155:5")).toMatchObject({ code: 2 });
  expect(await run("--block", "5")).toMatchObject({ code: 2 });
  expect(await run("--blocks", "5")).toMatchObject({ code: 2 });
});

test("the books of a chain are compared by one process at a time, every five minutes", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const taken = async () => (await Promise.all(Array.from({ length: 5 }, () => takeReconciliations(till.deps)))).flat();
  till.clock.advance(1_000);
  expect(await taken()).toEqual([chain.id]);
  expect(await taken()).toEqual([]);
  till.clock.advance(300_000);
  expect(await taken()).toEqual([chain.id]);
});
