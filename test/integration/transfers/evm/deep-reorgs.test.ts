import { expect, test } from "vitest";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

/** Blocks are slow, so no transaction is old enough to be replaced for its tip. */
const change = { finality: { blocks: 1 }, blockMs: 10_000 };
/** An accepted transaction is broadcast again after this time. */
const LATER_MS = 30_000;

test("a reorg below the final height lands the same bytes again, and payments before and after it are paid out", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change });
  const [first, second] = await fundBuyers(chain, 2);
  if (!first || !second) throw new Error("no buyers");
  const one = await fixture.create();
  await fixture.verify(await fixture.attempt(one, first));
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.status(one)).state).toBe("succeeded");
  const [finalRow] = await fixture.db.selectFrom("transaction").selectAll().execute();
  expect(finalRow?.state).toBe("final");

  await reorg();
  expect(await transfersTo(chain, chain.keys.treasury.address)).toEqual([]);
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  const errorLine = fixture.lines.find((line) => line.includes("reorg reverted final blocks"));
  expect(JSON.parse(errorLine ?? "{}")).toMatchObject({ level: "error", chain: chain.id, depth: 1 });
  await fixture.watch();
  const [rowAfterReorg, ...others] = await fixture.db.selectFrom("transaction").selectAll().execute();
  expect(others).toEqual([]);
  expect(rowAfterReorg).toMatchObject({ hash: finalRow?.hash, state: "final" });
  expect(rowAfterReorg?.block_id).not.toBe(finalRow?.block_id);
  expect(await fixture.status(one)).toMatchObject({ state: "succeeded", info: { txId: finalRow?.hash } });

  const two = await fixture.pay(second);
  expect((await fixture.status(two)).state).toBe("succeeded");
  const settlements = await Promise.all([one, two].map((id) => fixture.settlementOf(id)));
  expect(await fixture.settle(...settlements.map(({ id }) => id))).toEqual(["begun", "begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, fixture.destination)).toBe(2_000_000n);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(2);
  const transactions = await fixture.db.selectFrom("transaction").selectAll().orderBy("nonce").execute();
  expect(transactions.map((row) => [row.nonce, row.state])).toEqual([
    [0, "final"],
    [1, "final"],
    [2, "final"],
  ]);
  const entries = await fixture.db.selectFrom("ledger_entry").select(["account", "amount"]).execute();
  const treasury = entries.filter(({ account }) => account === "treasury");
  expect(treasury.reduce((sum, { amount }) => sum + amount, 0n)).toBe(0n);
});

test("a reorg below the final height that removes several nonces lands them all again, in order", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change });
  await fixture.watch();
  const buyers = await fundBuyers(chain, 4);
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  const ids: string[] = [];
  for (const buyer of buyers.slice(0, 3)) ids.push(await fixture.pay(buyer));
  const before = await fixture.db.selectFrom("transaction").select("hash").orderBy("nonce").execute();

  await reorg();
  for (let pass = 0; pass < 2; pass += 1) {
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
  }
  const after = await fixture.db.selectFrom("transaction").select(["hash", "state"]).orderBy("nonce").execute();
  expect(after).toEqual(before.map(({ hash }) => ({ hash, state: "final" })));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(3);
  ids.push(await fixture.pay(buyers[3] ?? (await fundBuyer(chain))));
  for (const id of ids) expect((await fixture.status(id)).state).toBe("succeeded");
  expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(4_000_000n);
  const kinds = (await fixture.db.selectFrom("ledger_group").select("kind").orderBy("kind").execute()).map(
    ({ kind }) => kind,
  );
  expect(kinds).toEqual([...Array(4).fill("gas"), ...Array(4).fill("payment")]);
});
