import { numberToHex } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { makeCarrier, relayByStranger } from "../../support/carry.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../support/chain.ts";

/** A transfer on a chain whose only endpoint can lag. */
async function behindProxy(change: Record<string, unknown> = { finality: { blocks: 3 } }) {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url], change });
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.watch();
  return { chain, proxy, carrier, one };
}

test("logs that an endpoint left out at the first reading are found before their block is final", async () => {
  const { chain, proxy, carrier, one } = await behindProxy();
  proxy.alter((method, _params, result) => (method === "eth_getLogs" ? [] : result));
  await relayByStranger(chain, one.call);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["ready"]);
  proxy.alter(undefined);
  await mine(chain, 4);
  await carrier.watch();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(carrier.confirmed).toHaveLength(1);
});

test("a block with our own transaction is not read without its logs, and the transfer is not sent again", async () => {
  const { chain, proxy, carrier, one } = await behindProxy();
  await carrier.relay();
  proxy.alter((method, _params, result) => (method === "eth_getLogs" ? [] : result));
  await expect(carrier.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
  expect(await carrier.statesOf([one.id])).toEqual(["carried"]);
  proxy.alter(undefined);
  for (let pass = 0; pass < 3; pass += 1) {
    carrier.clock.advance(60_000);
    await carrier.relay();
    await mine(chain, 2);
    await carrier.watch();
  }
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(carrier.confirmed).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("an endpoint that falls behind reverts nothing, and nothing that is in a block is sent again", async () => {
  const { chain, proxy, carrier, one } = await behindProxy();
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["included"]);
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
    carrier.clock.advance(30_000);
    await carrier.watch();
  }
  expect(await carrier.statesOf([one.id])).toEqual(["included"]);
  expect((await carrier.transactions()).map((row) => row.state)).toEqual(["included"]);
  proxy.alter(undefined);
  await mine(chain, 3);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await carrier.sightings()).map((row) => row.orphaned)).toEqual([false]);
});

test("an endpoint whose head is below the cursor does not count as the head of its chain", async () => {
  const { chain, proxy, carrier } = await behindProxy();
  const head = Number(await chain.client.getBlockNumber());
  const reachedAt = async () =>
    (await carrier.db.selectFrom("chain_cursor").select("reached_head_at").executeTakeFirst())?.reached_head_at;
  await carrier.db.updateTable("chain_cursor").set({ reached_head_at: null }).execute();
  proxy.alter((method, _params, result) => (method === "eth_blockNumber" ? numberToHex(head - 1) : result));
  await carrier.watch();
  expect(await reachedAt()).toBeNull();
  proxy.alter(undefined);
  await carrier.watch();
  expect(await reachedAt()).not.toBeNull();
});

test("a block that names our transaction before its receipt exists is read later, and nothing is lost", async () => {
  const { proxy, carrier, one } = await behindProxy({ finality: { blocks: 1 } });
  await carrier.relay();
  proxy.alter((method, _params, result) => (method === "eth_getTransactionReceipt" ? null : result));
  await expect(carrier.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
  expect(await carrier.statesOf([one.id])).toEqual(["carried"]);
  proxy.alter(undefined);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a receipt that names another block than the one that was read is read again later", async () => {
  const { proxy, carrier, one } = await behindProxy({ finality: { blocks: 1 } });
  await carrier.relay();
  proxy.alter((method, _params, result) =>
    method === "eth_getTransactionReceipt" ? { ...(result as object), blockHash: `0x${"0b".repeat(32)}` } : result,
  );
  await expect(carrier.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
  expect((await carrier.transactions()).map(({ state }) => state)).toEqual(["accepted"]);
  proxy.alter(undefined);
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a successful receipt without the transfer's logs confirms no transfer", async () => {
  const { chain, proxy, carrier, one } = await behindProxy({ finality: { blocks: 1 } });
  // The logs are another token's, as if the token's address had no code.
  proxy.alter((method, _params, result) =>
    method === "eth_getLogs"
      ? (result as { address: string }[]).map((log) => ({ ...log, address: `0x${"99".repeat(20)}` }))
      : result,
  );
  await carrier.relay();
  await carrier.watch();
  await mine(chain, 2);
  await carrier.watch();
  expect(carrier.confirmed).toEqual([]);
  expect((await carrier.transactions())[0]).toMatchObject({ reverted: false });
  expect(await carrier.statesOf([one.id])).not.toContain("confirmed");
});

test("a node three blocks behind that answers every second call causes no state to flap and nothing mined to be sent again", async () => {
  const { chain, proxy, carrier, one } = await behindProxy({ finality: { blocks: 6 } });
  await mine(chain, 6);
  await carrier.watch();
  await carrier.relay();
  const more = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  const sent = (await carrier.transactions()).length;
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
  for (let pass = 0; pass < 40 && carrier.confirmed.length < 2; pass += 1) {
    carrier.clock.advance(5_000);
    await carrier.watch().catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
    await carrier.relay();
    if (pass % 4 === 3) await mine(chain);
    newest = await head();
  }
  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "confirmed"]);
  for (const id of ids) {
    const moves = await carrier.db.selectFrom("event").select("to_state").where("subject", "=", id).execute();
    expect(moves.map((event) => event.to_state).sort()).toEqual(["carried", "confirmed", "included", "ready"]);
  }
  expect(sends).toEqual([]);
  expect(await carrier.transactions()).toHaveLength(sent);
  expect((await carrier.sightings()).map((row) => row.orphaned)).toEqual([false, false]);
});
