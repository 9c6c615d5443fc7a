import { describe, expect, test } from "vitest";
import {
  fundBuyer,
  fundBuyers,
  mine,
  startChain,
  type TestChainOptions,
  transfersTo,
} from "../../../support/evm-chain.ts";
import { limits } from "../../../support/log-limits.ts";
import { type ProviderRules, startRealisticProvider } from "../../../support/realistic-provider.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

type Options = { change?: Record<string, unknown>; chain?: TestChainOptions; providers?: readonly ProviderRules[] };

/** A chain behind realistic providers, with a fixture that has read it up to its head. */
async function startProvided({ change = {}, chain: options = {}, providers: rules = [{}] }: Options = {}) {
  const chain = await startChain(options);
  const providers = await Promise.all(rules.map(() => startRealisticProvider({ target: chain.url })));
  const [first] = providers;
  if (!first) throw new Error("there is no provider");
  const fixture = await makeTransfersFixture(chain, {
    rpcUrls: providers.map(({ url }) => url),
    change: { finality: { blocks: 3 }, ...change },
  });
  await fixture.watch();
  for (const [index, one] of rules.entries()) providers[index]?.setRules(one);
  /** Runs a pass of the watcher, which may end with a transient error. */
  const watch = () => fixture.watch().catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
  /** Runs passes until these transfers are confirmed, and mines a block after every fourth one. */
  const watchUntilConfirmed = (...ids: string[]) => {
    let passes = 0;
    return waitFor(
      async () => {
        await watch();
        if (passes++ % 4 === 3) await mine(chain);
        return (await fixture.statesOf(ids)).every((state) => state === "confirmed");
      },
      { within: 30_000, what: "confirmed transfers" },
    );
  };
  const cursor = () => fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  return { chain, providers, first, fixture, watch, watchUntilConfirmed, cursor };
}

/** Includes a transfer that a third party relays, in the middle of a gap of this many blocks. */
async function makeGap({ chain, fixture }: Awaited<ReturnType<typeof startProvided>>, blocks: number): Promise<string> {
  const { id, call } = await fixture.sign(await fundBuyer(chain));
  await mine(chain, Math.floor(blocks / 2));
  await relayByThirdParty(chain, call);
  await mine(chain, Math.ceil(blocks / 2));
  return id;
}

describe("a limit on the size of eth_getLogs", () => {
  test.each(
    limits.map(({ code, words }, index) => ({ code, words, name: words({ blocks: 30, logs: 1, from: 0 }), index })),
  )("with the error $code $name delays a gap of 200 blocks by a few calls", async ({ code, words }) => {
    const provided = await startProvided({ providers: [{ logs: { code, words, blocks: 30, logs: 1 } }] });
    const id = await makeGap(provided, 200);
    await provided.watchUntilConfirmed(id);
    const { refused, calls } = provided.first.counts;
    expect(refused["logs"]).toBeGreaterThan(0);
    expect(refused["logs"]).toBeLessThan(12);
    expect(calls["eth_getLogs"]).toBeLessThan(120);
    expect(provided.fixture.confirmed).toHaveLength(1);
  });

  test("that holds for single blocks as well is met by reading receipts", async () => {
    const logsRefused = { code: -32_005, message: "limit exceeded" };
    const provided = await startProvided({ change: { logRange: 8 }, providers: [{ logsRefused }] });
    const { chain, fixture } = provided;
    const { id, call } = await fixture.sign(await fundBuyer(chain));
    await relayByThirdParty(chain, call);
    await provided.watchUntilConfirmed(id);
    expect(provided.first.counts.calls["eth_getBlockReceipts"]).toBeGreaterThan(0);
  });
});

test("a block whose logs an endpoint shows in no way is read from the next endpoint", async () => {
  const provided = await startProvided({ providers: [{}, {}] });
  const { chain, first, fixture } = provided;
  first.setRules({ logsRefused: { code: -32_005, message: "limit exceeded" }, missing: ["eth_getBlockReceipts"] });
  const { id, call } = await fixture.sign(await fundBuyer(chain));
  await relayByThirdParty(chain, call);
  await provided.watch();
  expect(await fixture.statesOf([id])).toEqual(["included"]);
});

test("a block whose logs no endpoint shows stops the watcher with an error, and is not skipped", async () => {
  const provided = await startProvided();
  const { chain, first, fixture, cursor } = provided;
  const before = await cursor();
  first.setRules({ logsRefused: { code: -32_005, message: "limit exceeded" }, missing: ["eth_getBlockReceipts"] });
  const { id, call } = await fixture.sign(await fundBuyer(chain));
  await relayByThirdParty(chain, call);
  for (let pass = 0; pass < 2; pass += 1)
    await expect(fixture.watch()).rejects.toMatchObject({
      code: "logs_refused",
      transient: true,
      message: expect.stringContaining("limit exceeded"),
    });
  expect((await cursor()).number).toBe(before.number);
  first.setRules({});
  await provided.watchUntilConfirmed(id);
});

describe("a rate limit", () => {
  test.each([
    { form: "the header Retry-After", json: undefined, retryAfterSeconds: 1 },
    { form: "a status alone", json: undefined },
    {
      form: "an error in JSON",
      json: { code: 429, message: "Your app has exceeded its compute units per second capacity." },
    },
  ])("with $form makes the watcher wait and never shortens a range", async ({ form: _, ...budget }) => {
    const provided = await startProvided();
    const { chain, first, watch, cursor } = provided;
    const id = await makeGap(provided, 300);
    first.setRules({ budget: { units: 400, ...budget } });
    await provided.watchUntilConfirmed(id);
    const { ranges, refused } = first.counts;
    expect(refused["budget"]).toBeGreaterThan(0);
    first.setRules({});
    ranges.splice(0);
    await mine(chain, 300);
    const { number: head } = await chain.client.getBlock();
    const hasRead = async () => {
      await watch();
      return (await cursor()).number >= Number(head);
    };
    // The endpoint is not asked for up to a second after its last refusal.
    await waitFor(hasRead, { within: 30_000, what: "the gap" });
    expect(Math.max(...ranges)).toBeGreaterThan(270);
  });

  test("that allows fewer calls a second than a pass makes delays the watcher, and does not stop it", async () => {
    const provided = await startProvided();
    const id = await makeGap(provided, 12);
    // Fourteen blocks cost 1,960 units.
    provided.first.setRules({ budget: { units: 600 } });
    await provided.watchUntilConfirmed(id);
    expect(provided.first.counts.refused["budget"]).toBeGreaterThan(0);
  });

  test("suspends its endpoint for as long as the provider asks, and the other endpoint takes its calls", async () => {
    const { chain, providers, watch, fixture } = await startProvided({ providers: [{}, {}] });
    const [first, second] = providers;
    first?.setRules({ budget: { units: 0, retryAfterSeconds: 30 } });
    await watch();
    const asked = first?.counts.units;
    const { id, call } = await fixture.sign(await fundBuyer(chain));
    await relayByThirdParty(chain, call);
    for (let pass = 0; pass < 3; pass += 1) {
      await watch();
      await mine(chain);
    }
    expect(first?.counts.units).toBe(asked);
    expect(second?.counts.units).toBeGreaterThan(0);
    expect(await fixture.statesOf([id])).not.toEqual(["ready"]);
  });
});

test("nodes three blocks apart behind one URL cause no reorg, no early confirmation and no second transaction", async () => {
  const provided = await startProvided({ change: { finality: { blocks: 6 } } });
  const { chain, first, fixture, watch } = provided;
  const buyers = await fundBuyers(chain, 3);
  await mine(chain, 4);
  first.setRules({ nodes: [0, 3, 1], refusesFuture: true });
  const ids = (await fixture.signAll(buyers)).map(({ id }) => id);
  const isConfirmed = async () => {
    fixture.clock.advance(2_000);
    await fixture.relay().catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
    await watch();
    await mine(chain);
    const head = Number(await chain.client.getBlockNumber());
    for (const { block_number: number } of fixture.confirmed) expect(number).toBeLessThanOrEqual(head - 5);
    return (await fixture.statesOf(ids)).every((state) => state === "confirmed");
  };
  await waitFor(isConfirmed, { within: 30_000 });
  expect((await fixture.observations()).map(({ orphaned }) => orphaned)).toEqual([false, false, false]);
  expect(fixture.confirmed).toHaveLength(3);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(3);
});

test("receipts that are null for a while delay the block of a third party's transaction, and lose nothing", async () => {
  const provided = await startProvided({ providers: [{ receiptsAfterMs: 500 }] });
  const { chain, fixture, cursor } = provided;
  const before = await cursor();
  const { id, call } = await fixture.sign(await fundBuyer(chain));
  const hash = await chain.client.sendTransaction({ to: chain.contracts.token, data: call, gas: 200_000n });
  await chain.client.waitForTransactionReceipt({ hash });
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind" });
  expect((await cursor()).number).toBeLessThan(before.number + 2);
  await provided.watchUntilConfirmed(id);
});

test("a final height that stands still confirms nothing, and one that jumps by 300 blocks confirms everything up to it", async () => {
  const provided = await startProvided({ change: { finality: "safe" } });
  const { chain, first, fixture, watch } = provided;
  first.setRules({ tags: { at: Number(await chain.client.getBlockNumber()) } });
  const id = await makeGap(provided, 320);
  for (let pass = 0; pass < 25; pass += 1) await watch();
  expect(await fixture.statesOf([id])).toEqual(["included"]);
  const refusal = limits[0];
  if (!refusal) throw new Error("there is no limit");
  first.setRules({ tags: { step: 300, depth: 1 }, logs: { ...refusal, blocks: 100, logs: 10_000 } });
  await mine(chain, 300);
  await provided.watchUntilConfirmed(id);
  const { final_number: final } = await provided.cursor();
  expect(final % 300).toBe(0);
});

test("a pruned endpoint is passed over while another has the history", async () => {
  const provided = await startProvided({ providers: [{}, {}] });
  const { chain, first, fixture, watch } = provided;
  const id = await makeGap(provided, 120);
  first.setRules({ prunedBelow: Number(await chain.client.getBlockNumber()) });
  await watch();
  expect(await fixture.statesOf([id])).toEqual(["included"]);
  // The second reading cannot use it: after a while, the other endpoint is trusted alone.
  await watch();
  fixture.clock.advance(60_000);
  await provided.watchUntilConfirmed(id);
});

test("blocks that every endpoint has pruned stop the watcher with an error, and are not skipped", async () => {
  const provided = await startProvided();
  const { chain, first, fixture, cursor } = provided;
  const id = await makeGap(provided, 120);
  const before = await cursor();
  first.setRules({ prunedBelow: Number(await chain.client.getBlockNumber()) });
  await expect(fixture.watch()).rejects.toMatchObject({ code: "logs_refused", transient: true });
  expect((await cursor()).number).toBe(before.number);
  first.setRules({});
  await provided.watchUntilConfirmed(id);
});

test("a node that restarts with an older head reverts nothing and loses nothing", async () => {
  const provided = await startProvided({ change: { finality: { blocks: 4 } } });
  const { chain, first, fixture, watch } = provided;
  const { id } = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await mine(chain, 2);
  await watch();
  first.restart(40);
  for (let pass = 0; pass < 4; pass += 1) await watch();
  expect(await fixture.statesOf([id])).toEqual(["included"]);
  expect((await fixture.observations()).map(({ orphaned }) => orphaned)).toEqual([false]);
  first.setRules({});
  await mine(chain, 4);
  await provided.watchUntilConfirmed(id);
});

test("a request that hangs is given up, and the transfer is confirmed by later ones", async () => {
  const provided = await startProvided({
    change: { rpcTimeoutMs: 2_000 },
    providers: [{ hang: { ms: 20_000, every: 9 } }],
  });
  const { id, call } = await provided.fixture.sign(await fundBuyer(provided.chain));
  await relayByThirdParty(provided.chain, call);
  await provided.watchUntilConfirmed(id);
  expect(provided.first.counts.refused["hang"]).toBeGreaterThan(0);
});
