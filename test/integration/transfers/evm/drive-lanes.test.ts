import { expect, test } from "vitest";
import { encodeTransfer, hashAuthorization } from "../../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { fundBuyer, fundBuyers, sendUsdc, startChain, transfersTo, usdcBalance } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

test("forty transfers share a few transactions, and each is proved by its own log", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const signed = await fixture.signAll(await fundBuyers(chain, 40));
  const ids = signed.map(({ id }) => id);

  expect(await fixture.relay()).toBe("idle");
  await fixture.watch();

  const transactions = await fixture.transactions();
  expect(transactions.length).toBeLessThanOrEqual(2);
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect(fixture.confirmed.map(({ id }) => id).sort()).toEqual(ids.toSorted());
  const proofs = fixture.confirmed.map((found) => `${found.tx_hash} ${found.log_index}`);
  expect(new Set(proofs).size).toBe(40);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(40);
  // The log of each observation names the payer of its transfer.
  const payers = new Map((await fixture.rowsOf(ids)).map((row) => [row.id, row.payer]));
  for (const { payer, transfer_id } of await fixture.observations()) expect(payer).toBe(payers.get(transfer_id ?? ""));
});

test("a member that would fail is held with the token's own reason, and the others are sent", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const poor = await fundBuyer(chain, 999_999n);
  const [good, bad, alsoGood] = await fixture.signAll(
    [await fundBuyer(chain), poor, await fundBuyer(chain)],
    1_000_000n,
  );
  const ids = [good, bad, alsoGood].map((one) => one?.id ?? "");

  const before = fixture.deps.now().getTime();
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "ready", "confirmed"]);
  const [, held] = await fixture.rowsOf(ids);
  expect(held?.last_error).toContain("exceeds balance");
  expect(held?.hold_until?.getTime()).toBeGreaterThan(before + 900);

  // The held transfer cost nothing, and it is sent once the buyer has topped up and the hold is over.
  await sendUsdc(chain, await fundBuyer(chain), poor.address, 1n);
  fixture.clock.advance(5_000);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
  expect((await fixture.transactions()).map((row) => row.reverted)).toEqual([false, false]);
});

test("a member that fails only on chain is unassigned and retried alone, and the others succeed", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const spender = await fundBuyer(chain, 1_000_000n);
  const buyers = [await fundBuyer(chain), spender, await fundBuyer(chain)];
  const ids = (await fixture.signAll(buyers, 1_000_000n)).map(({ id }) => id);
  await chain.client.setBalance({ address: spender.address, value: 10n ** 18n });

  // The simulation still saw the money; the buyer's own transaction pays more and lands first.
  await chain.client.setAutomine(false);
  await fixture.relay();
  await chain.client.sendTransaction({
    account: spender,
    to: chain.contracts.token,
    data: `0xa9059cbb${"ab".repeat(20).padStart(64, "0")}${1_000_000n.toString(16).padStart(64, "0")}`,
    maxPriorityFeePerGas: 50n * 10n ** 9n,
    maxFeePerGas: 150n * 10n ** 9n,
    gas: 100_000n,
  });
  await chain.client.mine({ blocks: 1 });
  await chain.client.setAutomine(true);
  expect(await usdcBalance(chain, spender.address)).toBe(0n);
  await fixture.watch();

  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "ready", "confirmed"]);
  const [, alone] = await fixture.rowsOf(ids);
  expect(alone).toMatchObject({ alone: true, lane_id: null, lane_nonce: null });
  // The sweep finds it when its wait is over.
  expect(alone?.due_at).toEqual(alone?.hold_until);
  fixture.clock.advance(60_000);

  await sendUsdc(chain, await fundBuyer(chain), spender.address, 1_000_000n);
  const [another] = await fixture.signAll([await fundBuyer(chain)]);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([...ids, another?.id ?? ""])).toEqual(Array(4).fill("confirmed"));
  const [retried] = await fixture.rowsOf([ids[1] ?? ""]);
  const members = await fixture.db
    .selectFrom("transfer")
    .select("id")
    .where("lane_nonce", "=", retried?.lane_nonce ?? -1)
    .execute();
  expect(members).toEqual([{ id: ids[1] }]);
});

test("a transfer that a third party relays first is confirmed with that hash and not sent again", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const one = await fixture.sign(await fundBuyer(chain));
  const hash = await relayByThirdParty(chain, one.call);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: hash }]);
  await fixture.relay();
  expect(await fixture.transactions()).toEqual([]);
});

test("a third party that relays before our own transaction costs gas and nothing else", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const one = await fixture.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await fixture.relay();
  const fees = { maxPriorityFeePerGas: 50n * 10n ** 9n, maxFeePerGas: 150n * 10n ** 9n };
  const hash = await chain.client.sendTransaction({
    to: chain.contracts.token,
    data: one.call,
    gas: 200_000n,
    ...fees,
  });
  await chain.client.mine({ blocks: 1 });
  await chain.client.setAutomine(true);
  await fixture.watch();
  await fixture.relay();
  await fixture.watch();
  expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: hash }]);
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["final"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

/** A transfer that a third party has relayed, observed before its row was inserted. */
async function relayedBeforeWritten() {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { finality: { blocks: 3 } } });
  const one = await fixture.sign(await fundBuyer(chain));
  const row = await fixture.db.selectFrom("transfer").selectAll().where("id", "=", one.id).executeTakeFirstOrThrow();
  await fixture.db.deleteFrom("transfer").where("id", "=", one.id).execute();
  const hash = await relayByThirdParty(chain, one.call);
  await fixture.watch();
  expect(await fixture.observations()).toMatchObject([{ tx_hash: hash, transfer_id: null }]);
  await fixture.db.insertInto("transfer").values(row).execute();
  const confirm = async () => {
    await chain.client.mine({ blocks: 3 });
    await fixture.watch();
  };
  return { fixture, row, hash, confirm };
}

test("a third party's relay that was observed before the transfer was inserted is claimed, and nothing is sent", async () => {
  const { fixture, row, hash, confirm } = await relayedBeforeWritten();
  await fixture.relay();
  await confirm();
  expect(fixture.confirmed).toMatchObject([{ id: row.id, tx_hash: hash }]);
  expect(await fixture.transactions()).toEqual([]);
});

test("a third party's relay for a payer that is no longer served is claimed and not declined, because the money arrived", async () => {
  const { fixture, row, hash, confirm } = await relayedBeforeWritten();
  fixture.screened.add(row.payer);
  await fixture.relay();
  expect(fixture.declined).toEqual([]);
  await confirm();
  expect(fixture.confirmed).toMatchObject([{ id: row.id, tx_hash: hash }]);
});

test("a third party's own transfer under a buyer's nonce, with the same amount, does not count as the buyer's", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { finality: { blocks: 3 } } });
  const [buyer, stranger] = await fundBuyers(chain, 2);
  if (!buyer || !stranger) throw new Error("no buyers");
  const one = await fixture.sign(buyer);
  const [row] = await fixture.rowsOf([one.id]);
  const [token] = fixture.evm.tokens.values();
  if (!row || !token) throw new Error("there is no transfer");
  // EIP-3009 nonces are per payer, and anyone can read them on chain.
  const same = { ...toAuthorization(readEvmRow(row)), from: stranger.address };
  const signature = await stranger.sign({ hash: hashAuthorization(token.separator ?? "0x", same) });
  await relayByThirdParty(chain, encodeTransfer(same, signature));
  await fixture.watch();
  expect(await fixture.observations()).toMatchObject([
    { transfer_id: null, authorization_nonce: row.authorization_nonce },
  ]);
  expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
  await fixture.relay();
  await chain.client.mine({ blocks: 3 });
  await fixture.watch();
  const [sent] = await fixture.transactions();
  expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: sent?.hash }]);
  expect(fixture.unmatched).toHaveLength(1);
});

test("two racing owners of one lane send each transfer once, under nonces without a gap", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { batchGas: 400_000 } });
  const other = await makeTransfersFixture(chain, { databaseUrl: fixture.databaseUrl, change: { batchGas: 400_000 } });
  const ids = (await fixture.signAll(await fundBuyers(chain, 24))).map(({ id }) => id);
  const relayAll = async (carrierOfLane: typeof fixture) => {
    while ((await carrierOfLane.relay()) === "more");
  };
  await Promise.all([relayAll(fixture), relayAll(other), relayAll(fixture), relayAll(other)]);
  await fixture.watch();
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
  const transactions = await fixture.transactions();
  expect(transactions.map((row) => row.nonce)).toEqual(transactions.map((_row, index) => index));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(24);
});

test("one of two transfers of a payer that can afford only one is made, the other waits, and no other payer is delayed", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const buyer = await fundBuyer(chain, 1_000_000n);
  const ids = (await fixture.signAll([buyer, buyer, await fundBuyer(chain)], 1_000_000n)).map(({ id }) => id);
  for (let pass = 0; pass < 3; pass += 1) {
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(60_000);
  }
  const states = await fixture.statesOf(ids);
  expect(states.slice(0, 2).sort()).toEqual(["confirmed", "ready"]);
  expect(states[2]).toBe("confirmed");
  expect(await usdcBalance(chain, buyer.address)).toBe(0n);
  // A transfer that cannot be paid now costs gas once at most.
  expect((await fixture.transactions()).length).toBeLessThanOrEqual(2);
});

test("a transfer that arrives while another transaction waits for its block is sent before that block", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const [first, second] = await fixture.signAll(await fundBuyers(chain, 2));
  await chain.client.setAutomine(false);
  await fixture.db
    .updateTable("transfer")
    .set({ hold_until: new Date(4e12) })
    .where("id", "=", second?.id ?? "")
    .execute();
  await fixture.relay();
  await fixture.db
    .updateTable("transfer")
    .set({ hold_until: null })
    .where("id", "=", second?.id ?? "")
    .execute();
  await fixture.relay();

  expect(await fixture.statesOf([first?.id ?? "", second?.id ?? ""])).toEqual(["assigned", "assigned"]);
  expect((await fixture.transactions()).map(({ state }) => state)).toEqual(["accepted", "accepted"]);
});
