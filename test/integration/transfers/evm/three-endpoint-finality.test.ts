import { numberToHex } from "viem";
import { describe, expect, test } from "vitest";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

/** How long an endpoint that is behind is waited for. */
const WAIT_MS = 30_000;
const AHEAD = numberToHex(10_000);
const places = [0, 1, 2];

const isTag = (method: string, [which]: unknown[]) => method === "eth_getBlockByNumber" && which === "safe";
const read = (chain: TestChain, which: string): Promise<{ number: string }> =>
  chain.client.request({ method: "eth_getBlockByNumber", params: [which, false] } as never);

/** An endpoint that does not answer when it is asked for its final block. */
const unreachable = () => new RpcRefusal({ code: 0, message: "" }, 503);

/** A chain whose endpoints can each report another final block. Its clock moves only when a test advances it. */
async function startEndpoints(count: number, finality: unknown = "safe") {
  const chain = await startChain({ slotsInAnEpoch: 2 });
  await mine(chain, 10);
  const opened = Array.from({ length: count }, () => startAlteringProxy({ target: chain.url }));
  const proxies = await Promise.all(opened);
  const alterTag = (index: number, alter: (result: unknown) => unknown) =>
    proxies[index]?.alter((method, params, result) => (isTag(method, params) ? alter(result) : result));
  const rpcUrls = proxies.map(({ url }) => url);
  const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { finality } });
  fixture.clock.stop();
  await fixture.watch();
  await fixture.watch();
  const pay = async () => {
    const one = await fixture.sign(await fundBuyer(chain));
    await relayByThirdParty(chain, one.call);
    return one.id;
  };
  /** Makes a pass after some blocks and some time. */
  const watchAfter = async (ms: number, blocks = 2) => {
    await mine(chain, blocks);
    fixture.clock.advance(ms);
    await fixture.watch();
  };
  const countLone = async () =>
    (await fixture.deps.metrics.singleEndpointConfirmations.get()).values.reduce((sum, { value }) => sum + value, 0);
  const stateOf = async (id: string) => (await fixture.statesOf([id]))[0];
  /** Returns the endpoint that the newest block was read from. */
  const newestSource = async () => {
    const blocks = fixture.db.selectFrom("chain_block").select("source_endpoint").orderBy("number", "desc");
    return (await blocks.executeTakeFirst())?.source_endpoint;
  };
  return { chain, fixture, proxies, alterTag, pay, watchAfter, countLone, stateOf, newestSource };
}

describe.each(places)("endpoint %i of three reports a final block beyond the head", (liar) => {
  const honest = places.filter((place) => place !== liar);

  test("a payment waits for the two others, which report the same block for longer than any wait", async () => {
    const { chain, alterTag, pay, watchAfter, countLone, stateOf } = await startEndpoints(3);
    const before = await read(chain, "safe");
    alterTag(liar, () => ({ ...before, number: AHEAD }));
    for (const place of honest) alterTag(place, () => before);
    const id = await pay();
    for (let pass = 0; pass < 8; pass += 1) await watchAfter(WAIT_MS / 2);
    expect(await stateOf(id)).toBe("included");
    for (const place of honest) alterTag(place, (result) => result);
    for (let pass = 0; pass < 3; pass += 1) await watchAfter(WAIT_MS / 2);
    expect(await stateOf(id), "the two others have reached its block").toBe("confirmed");
    expect(await countLone()).toBe(0);
  });

  test("a payment waits for the two others, whose final block advances far behind the head", async () => {
    const { chain, alterTag, pay, watchAfter, stateOf } = await startEndpoints(3);
    let shown = await read(chain, "safe");
    alterTag(liar, (result) => ({ ...(result as object), number: AHEAD }));
    for (const place of honest) alterTag(place, () => shown);
    const id = await pay();
    for (let pass = 0; pass < 8; pass += 1) {
      // An epoch of a minute.
      if (pass % 4 === 3) shown = await read(chain, numberToHex(Number(shown.number) + 1));
      await watchAfter(WAIT_MS / 2, 4);
    }
    expect(await stateOf(id)).toBe("included");
  });

  test("a time in which one of the two others did not answer does not count once it has answered", async () => {
    const { chain, alterTag, pay, watchAfter, stateOf } = await startEndpoints(3);
    const before = await read(chain, "safe");
    alterTag(liar, () => ({ ...before, number: AHEAD }));
    const [steady = 0, unsteady = 0] = honest;
    const older = await read(chain, "0x3");
    alterTag(steady, () => older);
    const id = await pay();
    for (let pass = 0; pass < 6; pass += 1) {
      // An error of a call does not suspend the endpoint, whose suspension would end by real time.
      alterTag(unsteady, pass % 2 === 0 ? () => new RpcRefusal({ code: -32_603, message: "" }) : () => before);
      await watchAfter(WAIT_MS - 1);
    }
    expect(await stateOf(id)).toBe("included");
  });

  test("a payment is confirmed after the wait while one of the two others does not answer", async () => {
    const { chain, alterTag, pay, watchAfter, countLone, stateOf } = await startEndpoints(3);
    const before = await read(chain, "safe");
    const [steady = 0, down = 0] = honest;
    alterTag(liar, () => ({ ...before, number: AHEAD }));
    alterTag(steady, () => before);
    alterTag(down, unreachable);
    const id = await pay();
    for (let pass = 0; pass < 5; pass += 1) await watchAfter(WAIT_MS);
    expect([await stateOf(id), (await countLone()) > 0]).toEqual(["confirmed", true]);
  });
});

test.each([
  [["stuck", "honest", "honest"]],
  [["honest", "stuck", "honest"]],
  [["stuck", "ahead", "honest"]],
  [["ahead", "stuck", "honest"]],
  [["honest", "stuck", "ahead", "stuck"]],
  [["down", "ahead", "honest", "stuck"]],
])("payments go on, and no endpoint decides alone, while the endpoints are %j", async (kinds) => {
  const { chain, alterTag, pay, watchAfter, countLone, stateOf } = await startEndpoints(kinds.length);
  const before = await read(chain, "safe");
  for (const [place, kind] of kinds.entries())
    alterTag(place, (result) => {
      if (kind === "stuck") return before;
      if (kind === "ahead") return { ...before, number: AHEAD };
      return kind === "down" ? unreachable() : result;
    });
  const id = await pay();
  await mine(chain, 20);
  for (let pass = 0; pass < 4; pass += 1) await watchAfter(WAIT_MS);
  expect([await stateOf(id), await countLone()]).toEqual(["confirmed", 0]);
});

test("a payment waits while two of three endpoints report old final blocks, and is confirmed once one of them is right", async () => {
  const { chain, alterTag, pay, watchAfter, stateOf } = await startEndpoints(3);
  const old = [await read(chain, "safe"), await read(chain, "0x3")];
  for (const [index, place] of [0, 2].entries()) alterTag(place, () => old[index]);
  const id = await pay();
  await mine(chain, 20);
  for (let pass = 0; pass < 6; pass += 1) await watchAfter(WAIT_MS);
  expect(await stateOf(id)).toBe("included");
  alterTag(2, (result) => result);
  for (let pass = 0; pass < 3; pass += 1) await watchAfter(WAIT_MS);
  expect(await stateOf(id)).toBe("confirmed");
});

/** Answers each call with an error, so that another endpoint reads the blocks. Does not suspend the endpoint. */
const broken: Alter = () => new RpcRefusal({ code: -32_603, message: "" });

test.each([2, 3])("the first of %i endpoints does not confirm alone what another one has read first", async (count) => {
  const { chain, fixture, proxies, alterTag, pay, watchAfter, stateOf, newestSource } = await startEndpoints(count);
  // All blocks that the first endpoint has read are confirmed.
  for (const place of places.slice(0, count)) alterTag(place, (result) => ({ ...(result as object), number: AHEAD }));
  await watchAfter(0);
  const before = await read(chain, "latest");
  expect((await fixture.cursor()).finalNumber).toBe(Number(before.number));
  for (const place of places.slice(1, count)) alterTag(place, () => before);
  proxies[0]?.alter(broken);
  const id = await pay();
  await watchAfter(0);
  expect([await stateOf(id), await newestSource()]).toEqual(["included", "local-1"]);
  alterTag(0, () => ({ ...before, number: AHEAD }));
  for (let pass = 0; pass < 3; pass += 1) await watchAfter(0);
  expect(await stateOf(id)).toBe("included");
  for (let pass = 0; pass < 4; pass += 1) await watchAfter(WAIT_MS);
  expect(await stateOf(id)).toBe(count === 2 ? "confirmed" : "included");
});

/** Returns no block beyond a height. */
function stopAt(height: number): Alter {
  return (method, [which], result) => {
    if (method === "eth_blockNumber") return numberToHex(height);
    return method === "eth_getBlockByNumber" && Number(which) > height ? null : result;
  };
}

test.each([2, 3])("the first of %i endpoints does not confirm by blocks that no other one has", async (count) => {
  const { chain, fixture, proxies, pay, watchAfter, stateOf, newestSource } = await startEndpoints(count, {
    blocks: 8,
  });
  proxies[0]?.alter(broken);
  // All blocks that the first endpoint has read are confirmed.
  for (let pass = 0; pass < 2; pass += 1) await watchAfter(0, 10);
  const id = await pay();
  await fixture.watch();
  expect([await stateOf(id), await newestSource()]).toEqual(["included", "local-1"]);
  proxies[0]?.alter(undefined);
  const height = Number(await chain.client.getBlockNumber());
  for (const place of places.slice(1, count)) proxies[place]?.alter(stopAt(height));
  await watchAfter(0, 20);
  for (let pass = 0; pass < 3; pass += 1) await watchAfter(0, 1);
  expect((await fixture.cursor()).number).toBe(height + 23);
  expect(await stateOf(id)).toBe("included");
  for (let pass = 0; pass < 3; pass += 1) await watchAfter(WAIT_MS, 1);
  expect(await stateOf(id)).toBe(count === 2 ? "confirmed" : "included");
});
