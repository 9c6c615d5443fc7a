import { describe, expect, test } from "vitest";
import { WATCH_LEASE_MS } from "../../../transfers/watch-lease.ts";
import {
  fundBuyer,
  fundBuyers,
  mine,
  sendUsdc,
  startChain,
  transfersTo,
  usdcBalance,
} from "../../support/evm-chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { inRealTime } from "../../support/in-real-time.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../support/transfers-fixture.ts";
import { waitFor } from "../../support/wait-for.ts";

describe("the watcher of a chain", () => {
  test(
    "one process watches a chain, and another one takes over when its lease ends, however wrong the first one's clock was",
    inRealTime,
    async () => {
      const chain = await startChain();
      const proxy = await startFaultProxy({ target: chain.url });
      const first = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
      const second = await makeTransfersFixture(chain, { databaseUrl: first.databaseUrl });
      const one = await first.sign(await fundBuyer(chain));
      await first.relay();
      first.clock.advance(5 * 60_000);
      // The first process dies in the middle of its pass and leaves nothing but its lease.
      const dead = Promise.withResolvers<void>();
      proxy.onAnswer(() => dead.promise);
      const died = first.watch().catch(() => undefined);
      const cursor = () => first.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
      await waitFor(async () => (await cursor()).owner !== null, { within: 20_000 });
      await first.db
        .updateTable("chain_cursor")
        .set((eb) => ({ fence: eb("fence", "+", 1) }))
        .execute();
      expect(await second.watch()).toEqual({ mine: false });
      expect(second.confirmed).toEqual([]);

      // By the first process's clock, the lease would last for five minutes.
      await waitFor(async () => (await second.watch()).mine, { within: WATCH_LEASE_MS + 25_000 });
      await second.watch();
      expect(second.confirmed.map(({ id }) => id)).toEqual([one.id]);
      dead.resolve();
      await died;
    },
  );

  test("the watcher finds every transfer once in blocks that were made while no worker watched", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain, { change: { batchGas: 400_000 } });
    const ids = (await fixture.signAll(await fundBuyers(chain, 8))).map(({ id }) => id);
    await fixture.relay();
    await mine(chain, 60);
    await fixture.watch();
    expect(fixture.confirmed.map(({ id }) => id).sort()).toEqual(ids.toSorted());
    const head = Number(await chain.client.getBlockNumber());
    const cursor = await fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
    expect(cursor).toMatchObject({ number: head, final_number: head, owner: null });
    expect(cursor.reached_head_at).not.toBeNull();
  });

  test("the watcher confirms at the depth of the network's finality, and not a block earlier", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain, { change: { finality: { blocks: 4 } } });
    const one = await fixture.sign(await fundBuyer(chain));
    await fixture.relay();
    for (const state of ["included", "included", "included", "confirmed"]) {
      await fixture.watch();
      expect(await fixture.statesOf([one.id])).toEqual([state]);
      await mine(chain);
    }
    expect(fixture.confirmed).toHaveLength(1);
  });

  test("the watcher does not pass a block whose logs the endpoint lacks", async () => {
    const chain = await startChain();
    const proxy = await startFaultProxy({ target: chain.url });
    const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
    const one = await fixture.sign(await fundBuyer(chain));
    await fixture.relay();
    proxy.fail(({ method }) => (method === "eth_getLogs" ? { code: -32_000, message: "unknown block" } : undefined));
    const { number: before } = await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow();
    await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind", transient: true });
    const { number: after } = await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow();
    expect(after).toBe(before);
    expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
    proxy.fail(undefined);
    await fixture.watch();
    expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  });

  test("a database error during a booking stores no failed booking, and the next pass books it", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain);
    const one = await fixture.sign(await fundBuyer(chain));
    await fixture.relay();
    fixture.failBooking(Object.assign(new Error("deadlock detected"), { code: "40P01" }));
    await expect(fixture.watch()).rejects.toThrow("deadlock detected");
    expect(await fixture.statesOf([one.id])).toEqual(["included"]);
    expect(await fixture.db.selectFrom("failed_booking").selectAll().execute()).toEqual([]);
    fixture.failBooking(undefined);
    await fixture.watch();
    expect(fixture.confirmed.map(({ id }) => id)).toEqual([one.id]);
  });

  test("the watcher ignores transfers between third parties, and stores unmatched deposits", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain);
    const [one, other] = await fundBuyers(chain, 2);
    if (!one || !other) throw new Error("no buyers");
    await sendUsdc(chain, one, other.address, 5n);
    await sendUsdc(chain, one, chain.keys.treasury.address, 7n);
    await fixture.watch();
    expect(await fixture.observations()).toMatchObject([{ amount: 7n, transfer_id: null, authorization_nonce: null }]);
  });
});

describe("an expired authorization", () => {
  const soon = async (chain: Awaited<ReturnType<typeof startChain>>) =>
    Number((await chain.client.getBlock()).timestamp) + 1_000;

  test("an expired authorization ends its transfer once the final block's time is past it and nothing has moved", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain, { change: { finality: { blocks: 3 } } });
    const buyer = await fundBuyer(chain);
    const one = await fixture.sign(buyer, 5n, { validBefore: await soon(chain) });
    await fixture.watch();
    // Our own clock does not count.
    fixture.clock.advance(100_000_000);
    await mine(chain, 3);
    await fixture.watch();
    expect(await fixture.statesOf([one.id])).toEqual(["ready"]);

    await chain.client.increaseTime({ seconds: 2_000 });
    await mine(chain);
    await fixture.watch();
    expect(await fixture.statesOf([one.id]), "not yet final").toEqual(["ready"]);
    await mine(chain, 3);
    await fixture.watch();
    expect(await fixture.statesOf([one.id])).toEqual(["ended"]);
    expect(fixture.ended.map(({ id }) => id)).toEqual([one.id]);
    await fixture.relay();
    expect(await fixture.transactions()).toEqual([]);
    expect(await usdcBalance(chain, buyer.address)).toBe(1_000_000_000n);
  });

  test("an expired authorization does not end a transfer that was made, however late it is checked", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain, { change: { finality: { blocks: 3 } } });
    const one = await fixture.sign(await fundBuyer(chain), 5n, { validBefore: await soon(chain) });
    await relayByThirdParty(chain, one.call);
    await chain.client.increaseTime({ seconds: 2_000 });
    await mine(chain, 5);
    await fixture.watch();
    expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
    expect(fixture.ended).toEqual([]);
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  });
});
