import { type Hex, keccak256 } from "viem";
import { describe, expect, test } from "vitest";
import { readGasRules } from "../../../../transfers/evm/gas-limits.ts";
import { fundBuyers, mine, startChain } from "../../../support/evm-chain.ts";
import { delegate } from "../../../support/smart-wallets.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

/** Code that burns all the gas that it is given, whatever it is called with. */
const BURNS_ALL = "0xfe";
/**
 * Code that approves a signature (ERC-1271) where gas costs nothing, as in a simulation, and burns all gas elsewhere.
 */
const BURNS_WHEN_IT_COSTS = "0x3a15600657fe5b631626ba7e60e01b60005260206000f3";

type Mark = "honest" | "hostile";

/** Payers in this order, each with a valid signature of its key; the hostile ones then get this code. */
async function payersOf(marks: readonly Mark[], bytecode: Hex) {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  // A transfer that is held is tried again after seconds, which a slow machine needs for the other steps.
  fixture.clock.stop();
  const buyers = await fundBuyers(chain, marks.length);
  const signed: Awaited<ReturnType<typeof fixture.sign>>[] = [];
  for (const buyer of buyers) signed.push(await fixture.sign(buyer));
  const ids = signed.map(({ id }) => id);
  for (const [index, { address }] of buyers.entries())
    if (marks[index] === "hostile") await chain.client.setCode({ address, bytecode });
  const verify = async () => {
    const rows = await fixture.rowsOf(ids);
    const all = rows.map((row, index) => ({ ...row, proof: signed[index]?.signature ?? "0x", permit: null }));
    const byKey = await fixture.deps.verifier.verify(all, "key");
    const isCode = (index: number) => {
      const result = byKey[index];
      return result?.ok === false && result.byCode === true;
    };
    expect(byKey.map((_result, index) => (isCode(index) ? "hostile" : "honest"))).toEqual(marks);
    const byCode = await fixture.deps.verifier.verify(
      all.filter((_one, index) => isCode(index)),
      "wallet",
    );
    return byKey.map((result, index) => (isCode(index) ? byCode.shift() : result));
  };
  return { fixture, ids, verify };
}

const mixes: { name: string; marks: Mark[] }[] = [
  { name: "three before three honest ones", marks: ["hostile", "hostile", "hostile", "honest", "honest", "honest"] },
  { name: "several between honest ones", marks: ["honest", "hostile", "honest", "hostile", "hostile", "honest"] },
  { name: "one alone", marks: ["hostile"] },
];

describe.each(mixes)("payers whose code burns all gas ($name)", ({ marks }) => {
  test("payers with hostile code are verified separately, and the honest ones pass", async () => {
    const { verify } = await payersOf(marks, BURNS_ALL);
    expect((await verify()).map((result) => (result?.ok ? "honest" : "hostile"))).toEqual(marks);
  });

  test("payers with hostile code are held when they are relayed, and the honest ones are confirmed", async () => {
    const { fixture, ids } = await payersOf(marks, BURNS_ALL);
    await fixture.relay();
    await fixture.watch();
    expect(await fixture.statesOf(ids)).toEqual(marks.map((mark) => (mark === "honest" ? "confirmed" : "ready")));
    for (const row of await fixture.rowsOf(ids)) expect(row.retries).toBe(row.state === "ready" ? 1 : 0);
  });
});

test("a hostile payer whose transfer is relayed alone is held, and the others are confirmed", async () => {
  const { fixture, ids } = await payersOf(["hostile", "honest"], BURNS_ALL);
  await fixture.db.updateTable("transfer").set({ alone: true }).execute();
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["ready", "confirmed"]);
});

test("payers that turn into code which burns gas only where it costs are detected, and the others share their transaction", async () => {
  const { fixture, ids } = await payersOf(["honest", "hostile", "honest", "hostile", "honest"], BURNS_WHEN_IT_COSTS);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "ready", "confirmed", "ready", "confirmed"]);
  expect(await fixture.transactions()).toHaveLength(1);
  const [, hostile] = await fixture.rowsOf(ids);
  expect(hostile).toMatchObject({ smart_wallet: true, code_hash: keccak256(BURNS_WHEN_IT_COSTS), retries: 1 });
});

test("a payer that turns into such code costs three transactions of its own", async () => {
  const { fixture, ids } = await payersOf(["hostile"], BURNS_WHEN_IT_COSTS);
  for (let pass = 0; pass < 8; pass += 1) {
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(15_000);
  }
  expect(await fixture.transactions()).toHaveLength(3);
  expect(await fixture.statesOf(ids)).toEqual(["ended"]);
});

test("a payer whose key delegates to code after the confirm gets its own transaction, even with harmless code", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const buyers = await fundBuyers(chain, 3);
  const ids = (await fixture.signAll(buyers)).map(({ id }) => id);
  if (buyers[1]) await delegate(chain, buyers[1], "Delegate");
  await fixture.relay();
  const nonces = (await fixture.rowsOf(ids)).map(({ lane_nonce }) => lane_nonce);
  expect(nonces[0]).toBe(nonces[2]);
  expect(nonces[1]).not.toBe(nonces[0]);
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
});

test("a key that delegates after each dry run burns two shared transactions, then only gas of its own, and is barred", async () => {
  const chain = await startChain();
  const change = { walletGasPerHour: 1_500_000 };
  const fixture = await makeTransfersFixture(chain, { change });
  fixture.clock.stop();
  const [hostile, ...others] = await fundBuyers(chain, 6);
  if (!hostile) throw new Error("there is no buyer");
  const { address } = hostile;
  /** Relays a transfer of the hostile key, which is the first member, with those of others. The key delegates in their block. */
  const relayRound = async (buyers: typeof others) => {
    const burning = await fixture.sign(hostile, 1_000n);
    fixture.clock.advance(1);
    const ids = [burning, ...(await fixture.signAll(buyers, 1_000n))].map(({ id }) => id);
    await chain.client.setAutomine(false);
    await fixture.relay();
    await chain.client.setCode({ address, bytecode: BURNS_ALL });
    await mine(chain);
    await chain.client.setAutomine(true);
    await chain.client.setCode({ address, bytecode: "0x" });
    await fixture.watch();
    return [...new Set((await fixture.statesOf(ids)).slice(1))];
  };
  for (let round = 0; round < 2; round += 1) expect(await relayRound(others)).toEqual(["ready"]);
  expect(await fixture.transactions()).toHaveLength(2);
  expect(await relayRound(others)).toEqual(["confirmed"]);
  for (let round = 0; round < 2; round += 1) await relayRound([]);
  const { barred } = await readGasRules(fixture.deps, fixture.evm, { forLane: false });
  expect([...barred]).toEqual([address.toLowerCase()]);
});
