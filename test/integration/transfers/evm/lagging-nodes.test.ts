import { numberToHex } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

/** A transfer on a chain whose only endpoint can lag. */
async function behindProxy(change: Record<string, unknown> = { finality: { blocks: 3 } }) {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  return { chain, proxy, fixture, one };
}

test("logs that an endpoint left out at the first reading are found before their block is final", async () => {
  const { chain, proxy, fixture, one } = await behindProxy();
  proxy.alter((method, _params, result) => (method === "eth_getLogs" ? [] : result));
  await relayByThirdParty(chain, one.call);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
  proxy.alter(undefined);
  await mine(chain, 4);
  await fixture.watch();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect(fixture.confirmed).toHaveLength(1);
});

test("a block with our own transaction is not read without its logs, and the transfer is not sent again", async () => {
  const { chain, proxy, fixture, one } = await behindProxy();
  await fixture.relay();
  proxy.alter((method, _params, result) => (method === "eth_getLogs" ? [] : result));
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  proxy.alter(undefined);
  for (let pass = 0; pass < 3; pass += 1) {
    fixture.clock.advance(60_000);
    await fixture.relay();
    await mine(chain, 2);
    await fixture.watch();
  }
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect(fixture.confirmed).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("an endpoint that falls behind reverts nothing, and nothing that is in a block is sent again", async () => {
  const { chain, proxy, fixture, one } = await behindProxy();
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["included"]);
  const head = Number(await chain.client.getBlockNumber());
  const behind = head - 3;
  proxy.alter((method, params, result) => {
    if (method === "eth_blockNumber") return numberToHex(behind);
    if (method === "eth_getTransactionReceipt") return null;
    const [which] = params;
    if (method === "eth_getBlockByNumber" && typeof which === "string" && Number(which) > behind) return null;
    return result;
  });
  for (let pass = 0; pass < 4; pass += 1) {
    fixture.clock.advance(30_000);
    await fixture.watch();
  }
  expect(await fixture.statesOf([one.id])).toEqual(["included"]);
  expect((await fixture.transactions()).map((row) => row.state)).toEqual(["included"]);
  proxy.alter(undefined);
  await mine(chain, 3);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await fixture.observations()).map((row) => row.orphaned)).toEqual([false]);
});

test("an endpoint whose head is below the cursor does not count as the head of its chain", async () => {
  const { chain, proxy, fixture } = await behindProxy();
  const head = Number(await chain.client.getBlockNumber());
  const reachedAt = async () =>
    (await fixture.db.selectFrom("chain_cursor").select("reached_head_at").executeTakeFirst())?.reached_head_at;
  await fixture.db.updateTable("chain_cursor").set({ reached_head_at: null }).execute();
  proxy.alter((method, _params, result) => (method === "eth_blockNumber" ? numberToHex(head - 1) : result));
  await fixture.watch();
  expect(await reachedAt()).toBeNull();
  proxy.alter(undefined);
  await fixture.watch();
  expect(await reachedAt()).not.toBeNull();
});

test("a block that names our transaction before its receipt exists is read later, and nothing is lost", async () => {
  const { proxy, fixture, one } = await behindProxy({ finality: { blocks: 1 } });
  await fixture.relay();
  proxy.alter((method, _params, result) => (method === "eth_getTransactionReceipt" ? null : result));
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
  expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
  proxy.alter(undefined);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a receipt that names another block than the one that was read is read again later", async () => {
  const { proxy, fixture, one } = await behindProxy({ finality: { blocks: 1 } });
  await fixture.relay();
  proxy.alter((method, _params, result) =>
    method === "eth_getTransactionReceipt" ? { ...(result as object), blockHash: `0x${"0b".repeat(32)}` } : result,
  );
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
  expect((await fixture.transactions()).map(({ state }) => state)).toEqual(["accepted"]);
  proxy.alter(undefined);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a third party's receipt that shows other logs than the block is read again later", async () => {
  const { chain, proxy, fixture, one } = await behindProxy({ finality: { blocks: 1 } });
  await relayByThirdParty(chain, one.call);
  const other = `0x${"0b".repeat(32)}`;
  proxy.alter((method, _params, result) => {
    const receipt = result as { logs: object[] } | null;
    if (method !== "eth_getTransactionReceipt" || !receipt) return result;
    return { ...receipt, logs: receipt.logs.map((log) => ({ ...log, blockHash: other })) };
  });
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
  expect(await fixture.observations()).toEqual([]);
  proxy.alter(undefined);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a successful receipt without the transfer's logs confirms no transfer", async () => {
  const { chain, proxy, fixture, one } = await behindProxy({ finality: { blocks: 1 } });
  // As if the token's address had no code.
  proxy.alter((method, _params, result) => {
    if (method === "eth_getLogs") return [];
    return method === "eth_getTransactionReceipt" && result ? { ...result, logs: [] } : result;
  });
  await fixture.relay();
  await fixture.watch();
  await mine(chain, 2);
  await fixture.watch();
  expect(fixture.confirmed).toEqual([]);
  expect((await fixture.transactions())[0]).toMatchObject({ reverted: false });
  expect(await fixture.statesOf([one.id])).not.toContain("confirmed");
});

test("a node three blocks behind that answers every second call causes no state to flap and nothing mined to be sent again", async () => {
  const { chain, proxy, fixture, one } = await behindProxy({ finality: { blocks: 6 } });
  await mine(chain, 6);
  await fixture.watch();
  await fixture.relay();
  const more = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  const sent = (await fixture.transactions()).length;
  let calls = 0;
  const sends: unknown[] = [];
  const head = async () => Number(await chain.client.getBlockNumber());
  let newest = await head();
  proxy.alter((method, params, result) => {
    if (method === "eth_sendRawTransaction") sends.push(params);
    if (method === "eth_getTransactionReceipt" && calls < 40) return null;
    calls += 1;
    if (calls % 2 === 0) return result;
    const behind = newest - 3;
    if (method === "eth_blockNumber") return numberToHex(behind);
    const [which] = params;
    if (method === "eth_getBlockByNumber" && typeof which === "string" && Number(which) > behind) return null;
    return result;
  });
  const ids = [one.id, more.id];
  for (let pass = 0; pass < 40 && fixture.confirmed.length < 2; pass += 1) {
    fixture.clock.advance(5_000);
    await fixture.watch().catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
    await fixture.relay();
    if (pass % 4 === 3) await mine(chain);
    newest = await head();
  }
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed"]);
  for (const id of ids) {
    const moves = await fixture.db.selectFrom("event").select("to_state").where("subject", "=", id).execute();
    expect(moves.map((event) => event.to_state).sort()).toEqual(["assigned", "confirmed", "included", "ready"]);
  }
  expect(sends).toEqual([]);
  expect(await fixture.transactions()).toHaveLength(sent);
  expect((await fixture.observations()).map((row) => row.orphaned)).toEqual([false, false]);
});
