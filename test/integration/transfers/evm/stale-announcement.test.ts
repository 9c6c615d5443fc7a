import { expect, test } from "vitest";
import { closeChains } from "../../../../chains/open-chains.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

/** Longer than the test: only an announcement ends a wait. */
const LONG_MS = 50_000;

test("an announced block of a fork that is dropped at once reverts nothing", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const rpc = [{ name: "one", url: proxy.url, wsUrl: chain.url.replace("http", "ws") }];
  const fixture = await makeTransfersFixture(chain, { change: { rpc, pollMs: LONG_MS, finality: { blocks: 5 } } });
  addCleanup(async () => closeChains(fixture.deps.chains));
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watchOn();
  await chain.client.setAutomine(false);
  await fixture.relay();
  const start = Number(await chain.client.getBlockNumber());
  let questions = 0;
  proxy.alter((method, [which], result) => {
    if (method === "eth_blockNumber") questions += 1;
    if (method !== "eth_getBlockByNumber" || which !== "latest") return result;
    // The head of the other fork, two blocks above the cursor, as another backend of the provider shows it.
    return {
      ...(result as object),
      number: `0x${(start + 2).toString(16)}`,
      hash: `0x${"ab".repeat(32)}`,
      parentHash: `0x${"cd".repeat(32)}`,
    };
  });
  const pass = fixture.watchOn();
  await waitFor(() => questions > 0, { within: 10_000 });
  await chain.client.mine({ blocks: 2 });
  await pass;
  await fixture.watchOn();
  expect((await fixture.deps.metrics.reorgs.get()).values.filter(({ value }) => value > 0)).toEqual([]);
  expect(await fixture.statesOf([one.id])).toEqual(["included"]);
});

test("the block of an endpoint that stops after it announced the block is not mixed with what another endpoint shows", async () => {
  const chain = await startChain();
  const altering = await startAlteringProxy({ target: chain.url });
  const first = await startFaultProxy({ target: altering.url });
  const rpc = [
    { name: "one", url: first.url, wsUrl: chain.url.replace("http", "ws") },
    { name: "two", url: chain.url },
  ];
  const fixture = await makeTransfersFixture(chain, { change: { rpc, pollMs: LONG_MS, finality: { blocks: 1 } } });
  addCleanup(async () => closeChains(fixture.deps.chains));
  await fixture.watchOn();
  let questions = 0;
  let isAway = false;
  altering.alter((method, [which], result) => {
    if (method === "eth_blockNumber") questions += 1;
    if (method !== "eth_getBlockByNumber" || which !== "latest") return result;
    // A block that no other endpoint has.
    isAway = true;
    return { ...(result as object), hash: `0x${"ab".repeat(32)}` };
  });
  first.dropAnswers(({ params }) => isAway && params[0] !== "latest");
  // A pass ends before the announcement when the machine is slow.
  while (!isAway) {
    questions = 0;
    const pass = fixture.watchOn();
    await waitFor(() => questions > 0, { within: 10_000 });
    await chain.client.mine({ blocks: 1 });
    await pass;
  }
  expect((await fixture.cursor()).number).toBe(Number(await chain.client.getBlockNumber()));
});

test("an announced block is read from the second endpoint while the first one garbles blocks", async () => {
  const chain = await startChain();
  const first = await startAlteringProxy({ target: chain.url });
  const rpc = [
    { name: "one", url: first.url, wsUrl: chain.url.replace("http", "ws") },
    { name: "two", url: chain.url },
  ];
  // No block is final, so none waits for the second endpoint.
  const fixture = await makeTransfersFixture(chain, { change: { rpc, pollMs: LONG_MS, finality: { blocks: 50 } } });
  addCleanup(async () => closeChains(fixture.deps.chains));
  await fixture.watchOn();
  let questions = 0;
  let isAnnounced = false;
  first.alter((method, [which], result) => {
    if (method === "eth_blockNumber") questions += 1;
    if (method !== "eth_getBlockByNumber") return result;
    if (which === "latest") isAnnounced = true;
    return { ...(result as object), timestamp: "zz" };
  });
  // Its blocks are waited for at first, as those of an endpoint that lags.
  await chain.client.mine({ blocks: 1 });
  await expect(fixture.watchOn()).rejects.toMatchObject({ code: "rpc_answer" });
  fixture.clock.advance(30_000);
  // A pass ends before the announcement when the machine is slow.
  while (!isAnnounced) {
    questions = 0;
    const pass = fixture.watchOn();
    await waitFor(() => questions > 0, { within: 10_000 });
    await chain.client.mine({ blocks: 1 });
    await pass;
  }
  expect((await fixture.cursor()).number).toBe(Number(await chain.client.getBlockNumber()));
});
