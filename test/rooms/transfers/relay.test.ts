import { expect, test } from "vitest";
import { encodeTransfer, hashAuthorization } from "../../../chains/evm/eip3009.ts";
import { toAuthorization } from "../../../transfers/authorization.ts";
import { makeCarrier, relayByStranger } from "../../support/carry.ts";
import { fundBuyer, fundBuyers, sendUsdc, startChain, transfersTo, usdcBalance } from "../../support/chain.ts";

test("forty transfers share a few transactions, and each is proved by its own log", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const signed = await carrier.signAll(await fundBuyers(chain, 40));
  const ids = signed.map(({ id }) => id);

  expect(await carrier.relay()).toBe("idle");
  await carrier.watch();

  const transactions = await carrier.transactions();
  expect(transactions.length).toBeLessThanOrEqual(2);
  expect(new Set(await carrier.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect(carrier.confirmed.map(({ id }) => id).sort()).toEqual(ids.toSorted());
  const proofs = carrier.confirmed.map((found) => `${found.tx_hash} ${found.log_index}`);
  expect(new Set(proofs).size).toBe(40);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(40);
  // The log of each observation names the payer of its transfer.
  const payers = new Map((await carrier.rowsOf(ids)).map((row) => [row.id, row.payer]));
  for (const { payer, transfer_id } of await carrier.sightings()) expect(payer).toBe(payers.get(transfer_id ?? ""));
});

test("a member that would fail is held with the token's own reason, and the others are sent", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const poor = await fundBuyer(chain, 999_999n);
  const [good, bad, alsoGood] = await carrier.signAll(
    [await fundBuyer(chain), poor, await fundBuyer(chain)],
    1_000_000n,
  );
  const ids = [good, bad, alsoGood].map((one) => one?.id ?? "");

  const before = carrier.deps.now().getTime();
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "ready", "confirmed"]);
  const [, held] = await carrier.rowsOf(ids);
  expect(held?.last_trouble).toContain("exceeds balance");
  expect(held?.hold_until?.getTime()).toBeGreaterThan(before + 900);

  // The held transfer cost nothing, and it is sent once the buyer has topped up and the hold is over.
  await sendUsdc(chain, await fundBuyer(chain), poor.address, 1n);
  carrier.clock.advance(5_000);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
  expect((await carrier.transactions()).map((row) => row.reverted)).toEqual([false, false]);
});

test("a member that fails only on chain is unassigned and retried alone, and the others succeed", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const spender = await fundBuyer(chain, 1_000_000n);
  const buyers = [await fundBuyer(chain), spender, await fundBuyer(chain)];
  const ids = (await carrier.signAll(buyers, 1_000_000n)).map(({ id }) => id);
  await chain.client.setBalance({ address: spender.address, value: 10n ** 18n });

  // The simulation still saw the money; the buyer's own transaction pays more and lands first.
  await chain.client.setAutomine(false);
  await carrier.relay();
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
  await carrier.watch();

  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "ready", "confirmed"]);
  const [, alone] = await carrier.rowsOf(ids);
  expect(alone).toMatchObject({ alone: true, lane_id: null, lane_nonce: null });
  // The sweep finds it when its wait is over.
  expect(alone?.due_at).toEqual(alone?.hold_until);
  carrier.clock.advance(60_000);

  await sendUsdc(chain, await fundBuyer(chain), spender.address, 1_000_000n);
  const [another] = await carrier.signAll([await fundBuyer(chain)]);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([...ids, another?.id ?? ""])).toEqual(Array(4).fill("confirmed"));
  const [retried] = await carrier.rowsOf([ids[1] ?? ""]);
  const members = await carrier.db
    .selectFrom("transfer")
    .select("id")
    .where("lane_nonce", "=", retried?.lane_nonce ?? -1)
    .execute();
  expect(members).toEqual([{ id: ids[1] }]);
});

test("a transfer that a third party relays first is confirmed with that hash and not sent again", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const one = await carrier.sign(await fundBuyer(chain));
  const hash = await relayByStranger(chain, one.call);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(carrier.confirmed).toMatchObject([{ id: one.id, tx_hash: hash }]);
  await carrier.relay();
  expect(await carrier.transactions()).toEqual([]);
});

test("a third party that relays before our own transaction costs gas and nothing else", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const one = await carrier.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await carrier.relay();
  const fees = { maxPriorityFeePerGas: 50n * 10n ** 9n, maxFeePerGas: 150n * 10n ** 9n };
  const hash = await chain.client.sendTransaction({
    to: chain.contracts.token,
    data: one.call,
    gas: 200_000n,
    ...fees,
  });
  await chain.client.mine({ blocks: 1 });
  await chain.client.setAutomine(true);
  await carrier.watch();
  await carrier.relay();
  await carrier.watch();
  expect(carrier.confirmed).toMatchObject([{ id: one.id, tx_hash: hash }]);
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await carrier.transactions()).map((row) => row.state)).toEqual(["final"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

/** A transfer that a third party has relayed, observed before its row was inserted. */
async function relayedBeforeWritten() {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: { finality: { blocks: 3 } } });
  const one = await carrier.sign(await fundBuyer(chain));
  const row = await carrier.db.selectFrom("transfer").selectAll().where("id", "=", one.id).executeTakeFirstOrThrow();
  await carrier.db.deleteFrom("transfer").where("id", "=", one.id).execute();
  const hash = await relayByStranger(chain, one.call);
  await carrier.watch();
  expect(await carrier.sightings()).toMatchObject([{ tx_hash: hash, transfer_id: null }]);
  await carrier.db.insertInto("transfer").values(row).execute();
  const confirm = async () => {
    await chain.client.mine({ blocks: 3 });
    await carrier.watch();
  };
  return { carrier, row, hash, confirm };
}

test("a third party's relay that was observed before the transfer was inserted is claimed, and nothing is sent", async () => {
  const { carrier, row, hash, confirm } = await relayedBeforeWritten();
  await carrier.relay();
  await confirm();
  expect(carrier.confirmed).toMatchObject([{ id: row.id, tx_hash: hash }]);
  expect(await carrier.transactions()).toEqual([]);
});

test("a third party's relay for a payer that is no longer served is claimed and not declined, because the money arrived", async () => {
  const { carrier, row, hash, confirm } = await relayedBeforeWritten();
  carrier.screened.add(row.payer);
  await carrier.relay();
  expect(carrier.declined).toEqual([]);
  await confirm();
  expect(carrier.confirmed).toMatchObject([{ id: row.id, tx_hash: hash }]);
});

test("a third party's own transfer under a buyer's nonce, with the same amount, does not count as the buyer's", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: { finality: { blocks: 3 } } });
  const [buyer, stranger] = await fundBuyers(chain, 2);
  if (!buyer || !stranger) throw new Error("no buyers");
  const one = await carrier.sign(buyer);
  const [row] = await carrier.rowsOf([one.id]);
  const [token] = carrier.evm.tokens.values();
  if (!row || !token) throw new Error("there is no transfer");
  // EIP-3009 nonces are per payer, and anyone can read them on chain.
  const same = { ...toAuthorization(row), from: stranger.address };
  const signature = await stranger.sign({ hash: hashAuthorization(token.separator ?? "0x", same) });
  await relayByStranger(chain, encodeTransfer(same, signature));
  await carrier.watch();
  expect(await carrier.sightings()).toMatchObject([
    { transfer_id: null, authorization_nonce: row.authorization_nonce },
  ]);
  expect(await carrier.statesOf([one.id])).toEqual(["ready"]);
  await carrier.relay();
  await chain.client.mine({ blocks: 3 });
  await carrier.watch();
  const [sent] = await carrier.transactions();
  expect(carrier.confirmed).toMatchObject([{ id: one.id, tx_hash: sent?.hash }]);
  expect(carrier.stray).toHaveLength(1);
});

test("two racing owners of one lane send each transfer once, under nonces without a gap", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain, { change: { batchGas: 400_000 } });
  const other = await makeCarrier(chain, { databaseUrl: carrier.databaseUrl, change: { batchGas: 400_000 } });
  const ids = (await carrier.signAll(await fundBuyers(chain, 24))).map(({ id }) => id);
  const relayAll = async (carrierOfLane: typeof carrier) => {
    while ((await carrierOfLane.relay()) === "more");
  };
  await Promise.all([relayAll(carrier), relayAll(other), relayAll(carrier), relayAll(other)]);
  await carrier.watch();
  expect(new Set(await carrier.statesOf(ids))).toEqual(new Set(["confirmed"]));
  const transactions = await carrier.transactions();
  expect(transactions.map((row) => row.nonce)).toEqual(transactions.map((_row, index) => index));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(24);
});

test("one of two transfers of a payer that can afford only one is made, the other waits, and no other payer is delayed", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const buyer = await fundBuyer(chain, 1_000_000n);
  const ids = (await carrier.signAll([buyer, buyer, await fundBuyer(chain)], 1_000_000n)).map(({ id }) => id);
  for (let pass = 0; pass < 3; pass += 1) {
    await carrier.relay();
    await carrier.watch();
    carrier.clock.advance(60_000);
  }
  const states = await carrier.statesOf(ids);
  expect(states.slice(0, 2).sort()).toEqual(["confirmed", "ready"]);
  expect(states[2]).toBe("confirmed");
  expect(await usdcBalance(chain, buyer.address)).toBe(0n);
  // A transfer that cannot be paid now costs gas once at most.
  expect((await carrier.transactions()).length).toBeLessThanOrEqual(2);
});
