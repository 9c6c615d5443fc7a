import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { fundBuyer, mine, startChain, transfersTo } from "../../support/evm-chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { makeClock } from "../../support/test-deps.ts";
import { makeTransfersFixture } from "../../support/transfers-fixture.ts";
import { waitFor } from "../../support/wait-for.ts";

/** A watcher of a chain whose endpoint holds back its next response to one method until `letGo` is called. */
async function slowWatcher(method: string) {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const clock = makeClock();
  // The response is held back for longer than a call may take on a slow machine.
  const change = { rpcTimeoutMs: 600_000 };
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], clock, change });
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  const held = Promise.withResolvers<void>();
  onTestFinished(() => held.resolve());
  let calls = 0;
  proxy.onAnswer((name) => {
    if (name !== method) return undefined;
    calls += 1;
    return calls === 1 ? held.promise : undefined;
  });
  const cursor = () => fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  return {
    chain,
    fixture,
    clock,
    cursor,
    isCalled: () => waitFor(() => calls > 0, { within: 10_000, what: `${method} is called` }),
    callsSoFar: () => calls,
    letGo: () => held.resolve(),
  };
}

test("two jobs of one process never watch one chain at once", async () => {
  const slow = await slowWatcher("eth_blockNumber");
  const first = slow.fixture.watch();
  await slow.isCalled();
  const others = await Promise.all([1, 2, 3].map(() => slow.fixture.watch()));
  expect(others).toEqual([{ mine: false }, { mine: false }, { mine: false }]);
  expect(slow.callsSoFar()).toBe(1);
  slow.letGo();
  expect(await first).toMatchObject({ mine: true });
  expect(await slow.fixture.watch()).toMatchObject({ mine: true });
});

test("a call that takes longer than the lease does not lose the watch", async () => {
  const slow = await slowWatcher("eth_getLogs");
  const other = await makeTransfersFixture(slow.chain, { databaseUrl: slow.fixture.databaseUrl, clock: slow.clock });
  await mine(slow.chain);
  const pass = slow.fixture.watch();
  await slow.isCalled();
  const { fence, number } = await slow.cursor();
  for (let call = 0; call < 3; call += 1) {
    // Most of the lease passes each time, and its holder renews it.
    await sql`update chain_cursor set lease_until = lease_until - interval '4 seconds'`.execute(other.db);
    const isRenewed = async () => ((await slow.cursor()).lease_until?.getTime() ?? 0) > Date.now() + 3_000;
    await waitFor(isRenewed, { within: 10_000, what: "the lease is renewed" });
    expect(await other.watch()).toEqual({ mine: false });
  }
  slow.letGo();
  expect(await pass).toMatchObject({ mine: true });
  expect(await slow.cursor()).toMatchObject({ number: number + 1, fence, owner: null, lease_until: null });
});

test("a job that lost the watch writes nothing more and does not release the watch of its process's next job", async () => {
  const slow = await slowWatcher("eth_getLogs");
  const other = await makeTransfersFixture(slow.chain, { databaseUrl: slow.fixture.databaseUrl, clock: slow.clock });
  const one = await other.sign(await fundBuyer(slow.chain));
  await other.relay();
  const lostWatch = slow.fixture.watch();
  await slow.isCalled();
  const { number } = await slow.cursor();
  // As if its process had been stopped for longer than its lease. It is not, and may renew the lease in between.
  const takeOver = async () => {
    await other.db
      .updateTable("chain_cursor")
      .set({ lease_until: new Date(0) })
      .execute();
    return (await other.watch()).mine;
  };
  await waitFor(takeOver, { within: 20_000, what: "the other process watches" });
  expect((await slow.cursor()).number).toBeGreaterThan(number);
  const until = new Date(slow.clock.now().getTime() + 60_000);
  const taken = await other.db
    .updateTable("chain_cursor")
    .set((eb) => ({ owner: slow.fixture.deps.owner, lease_until: until, fence: eb("fence", "+", 1) }))
    .returningAll()
    .executeTakeFirstOrThrow();
  slow.letGo();
  await expect(lostWatch).rejects.toMatchObject({ code: "rpc_behind" });
  expect(await slow.cursor()).toEqual(taken);
  expect([...slow.fixture.confirmed, ...other.confirmed].filter(({ id }) => id === one.id)).toHaveLength(1);
  expect(await transfersTo(slow.chain, slow.chain.keys.treasury.address)).toHaveLength(2);
});
