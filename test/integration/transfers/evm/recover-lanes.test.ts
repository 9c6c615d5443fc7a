import { type Hex, parseGwei, parseTransaction } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { recoverLanes } from "../../../../transfers/evm/recover-lanes.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { startRealisticProvider } from "../../../support/realistic-provider.ts";
import { makeTransfersFixture, type TransfersFixture } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

const slow = { blockMs: 1_000 };
/** Longer than a lane waits before it broadcasts again, and before it checks the fee. */
const LATER_MS = 20_000;

const hashesOf = (fixture: TransfersFixture) =>
  fixture.transactions().then((rows) => rows.map((row) => row.hash as Hex));
const contentOf = (bytes: Buffer) => {
  const { to, value, data, nonce, gas } = parseTransaction(`0x${bytes.toString("hex")}`);
  return { to, value: value ?? 0n, data, nonce: nonce ?? 0, gas };
};

/** A transfer of a lane that waits in the node's pool. */
async function inPool(chain: TestChain, change: Record<string, unknown> = slow) {
  const fixture = await makeTransfersFixture(chain, { change });
  // A lane broadcasts again after seconds, which a slow machine needs for the other steps.
  fixture.clock.stop();
  const one = await fixture.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await fixture.relay();
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["accepted"]);
  return { fixture, one };
}

test("a transaction that the node dropped is broadcast again, under the same hash", async () => {
  const chain = await startChain();
  const { fixture, one } = await inPool(chain);
  const [hash = "0x"] = await hashesOf(fixture);
  await chain.client.dropTransaction({ hash });
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);

  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  await mine(chain);
  await fixture.watch();
  expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: hash }]);
  expect(await hashesOf(fixture)).toEqual([hash]);
});

test("a transaction that is stuck under a raised base fee is replaced under its nonce, unchanged and below the ceiling", async () => {
  const chain = await startChain();
  const { fixture, one } = await inPool(chain);
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("50") });
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);

  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  const [first, second, ...more] = await fixture.transactions();
  expect(more).toEqual([]);
  expect(second).toMatchObject({ nonce: first?.nonce, replacement: 1, state: "accepted" });
  expect(contentOf(second?.bytes as Buffer)).toEqual(contentOf(first?.bytes as Buffer));
  for (const fee of ["max_fee_per_gas", "max_priority_fee_per_gas"] as const)
    expect((second?.[fee] ?? 0n) * 1000n >= (first?.[fee] ?? 0n) * 1125n).toBe(true);
  expect(second?.max_fee_per_gas).toBeLessThanOrEqual(parseGwei("200"));

  await mine(chain);
  await fixture.watch();
  expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: second?.hash }]);
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["replaced", "final"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a replaced transaction may still land, and counts", async () => {
  const chain = await startChain();
  const { fixture, one } = await inPool(chain);
  const [first] = await fixture.transactions();
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("50") });
  await mine(chain);
  await fixture.watch();
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  const [, second] = await fixture.transactions();
  // A miner has kept the first bytes.
  await chain.client.dropTransaction({ hash: second?.hash as Hex });
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n });
  await mine(chain);
  await chain.client.sendRawTransaction({ serializedTransaction: `0x${first?.bytes.toString("hex")}` }).catch(() => 0);
  await mine(chain);
  await fixture.watch();
  expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: first?.hash }]);
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["final", "replaced"]);
});

test("a lane at its fee ceiling broadcasts no higher fee and signs nothing new", async () => {
  const chain = await startChain();
  const fees = { maxFeePerGas: parseGwei("10").toString(), priorityFeePerGas: parseGwei("1").toString() };
  const { fixture, one } = await inPool(chain, { ...slow, fees });
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("5000") });
  await mine(chain);
  await fixture.watch();
  const other = await fixture.sign(await fundBuyerNow(chain));
  for (let pass = 0; pass < 6; pass += 1) {
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
    await fixture.relay();
  }
  const transactions = await fixture.transactions();
  expect(new Set(transactions.map((row) => row.nonce))).toEqual(new Set([0]));
  for (const row of transactions) expect(row.max_fee_per_gas).toBeLessThanOrEqual(parseGwei("10"));
  expect(await fixture.statesOf([one.id, other.id])).toEqual(["assigned", "ready"]);

  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("1") });
  await mine(chain);
  await fixture.watch();
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  await fixture.relay();
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id, other.id])).toEqual(["confirmed", "confirmed"]);
});

test("a nonce that a foreign transaction used is given up once that is final, and the transfer goes on", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { ...slow, finality: { blocks: 3 } } });
  const lane = privateKeyToAccount(chain.keys.lanes[0]?.privateKey as Hex);
  await chain.client.sendTransaction({ account: lane, to: lane.address, value: 1n });
  await mine(chain);
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  await mine(chain, 5);
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
  fixture.clock.advance(LATER_MS);
  await fixture.relay();
  await mine(chain, 5);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await fixture.transactions()).map((row) => [row.nonce, row.state])).toEqual([
    [0, "replaced"],
    [1, "final"],
  ]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a nonce that a foreign transaction used is given up on a node that keeps no state of final blocks", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const change = { ...slow, finality: { blocks: 9 } };
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change });
  const lane = privateKeyToAccount(chain.keys.lanes[0]?.privateKey as Hex);
  await chain.client.sendTransaction({ account: lane, to: lane.address, value: 1n });
  await mine(chain);
  const one = await fixture.sign(await fundBuyer(chain));
  let oldestState = Number(await chain.client.getBlockNumber());
  proxy.fail(({ method, params: [, height] }) =>
    method === "eth_getTransactionCount" && Number(height) < oldestState
      ? { code: -32_000, message: "missing trie node" }
      : undefined,
  );
  await fixture.relay();
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  for (let block = 0; block < 3; block += 1) {
    oldestState += 4;
    await mine(chain, 4);
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
  }
  expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
});

test("a nonce is not given up because of a foreign transaction that a reorg has removed", async () => {
  const chain = await startChain();
  const provider = await startRealisticProvider({ target: chain.url });
  const change = { ...slow, finality: { blocks: 3 } };
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [provider.url], change });
  const lane = privateKeyToAccount(chain.keys.lanes[0]?.privateKey as Hex);
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await chain.client.sendTransaction({ account: lane, to: lane.address, value: 1n });
  await mine(chain);
  await fixture.relay();
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  await reorg();
  await mine(chain, 5);
  fixture.clock.advance(LATER_MS);
  // Follows the reorg, and broadcasts our transaction, which the next block includes.
  await fixture.watch();
  const broadcast = await fixture.transactions();
  await waitFor(async () => (await chain.client.getTransactionCount({ address: lane.address })) === 1, {
    within: 30_000,
    what: "our transaction in a block",
  });
  provider.setRules({ receiptsAfterMs: 600_000 });
  fixture.clock.advance(LATER_MS);
  const cursor = await fixture.cursor();
  await recoverLanes(fixture.deps, fixture.evm, { cursor, unsolicited: async () => () => undefined });
  expect(broadcast.map((row) => row.state)).toEqual(["accepted"]);
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
});

test("a nonce that our own transaction used is not given up, although its block is final before it is read", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { ...slow, finality: { blocks: 1 } } });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await fixture.relay();
  await mine(chain, 3);
  fixture.clock.advance(LATER_MS);
  const cursor = await fixture.cursor();
  expect(cursor.number).toBeLessThan(Number(await chain.client.getBlockNumber()));
  await recoverLanes(fixture.deps, fixture.evm, { cursor, unsolicited: async () => () => undefined });
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["final"]);
});

test("a nonce that our own transaction used is not given up while the endpoint lacks its receipt and its block is not read", async () => {
  const chain = await startChain();
  const provider = await startRealisticProvider({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [provider.url], change: slow });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await fixture.relay();
  await mine(chain, 3);
  provider.setRules({ receiptsAfterMs: 600_000 });
  fixture.clock.advance(LATER_MS);
  const cursor = await fixture.cursor();
  await recoverLanes(fixture.deps, fixture.evm, { cursor, unsolicited: async () => () => undefined });
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  provider.setRules({});
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["final"]);
});

test("a nonce that a foreign transaction used in a block that is not final is not given up", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { ...slow, finality: { blocks: 50 } } });
  const lane = privateKeyToAccount(chain.keys.lanes[0]?.privateKey as Hex);
  await chain.client.sendTransaction({ account: lane, to: lane.address, value: 1n });
  await mine(chain);
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  for (let pass = 0; pass < 3; pass += 1) {
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
  }
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["broadcast"]);
});

test("bytes that no node accepts, because the base fee rose before they were sent, are replaced as well", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: slow });
  const one = await fixture.sign(await fundBuyer(chain));
  // A rollup's node responds like this: it keeps nothing that cannot go into the next block.
  const message = "max fee per gas less than block base fee: address 0x00, maxFeePerGas: 1, baseFee: 2";
  proxy.fail(({ method }) => (method === "eth_sendRawTransaction" ? { code: -32_000, message } : undefined));
  await fixture.relay();
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("50") });
  await mine(chain);
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("50") });
  proxy.fail(undefined);
  for (let pass = 0; pass < 4; pass += 1) {
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("50") });
    await mine(chain);
  }
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

/** Funds a buyer while automine is off. */
async function fundBuyerNow(chain: TestChain) {
  const funded = fundBuyer(chain);
  await waitFor(async () => (await chain.client.getTxpoolStatus()).pending > 0, { within: 20_000 });
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n });
  await mine(chain);
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("5000") });
  await mine(chain);
  return funded;
}
