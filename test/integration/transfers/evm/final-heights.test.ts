import { numberToHex } from "viem";
import { describe, expect, test } from "vitest";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

const LARGE = 500_000_000n;
/** How long an endpoint that is behind is waited for. */
const WAIT_MS = 30_000;

type Numbered = { number: string };
const isTag = (method: string, [which]: unknown[]) => method === "eth_getBlockByNumber" && which === "safe";

const readTag = (chain: TestChain, tag: string): Promise<object> =>
  chain.client.request({ method: "eth_getBlockByNumber", params: [tag, false] } as never);

/** A chain whose endpoints can each report another final block. Its clock moves only when a test advances it. */
async function startEndpoints(count = 2) {
  const chain = await startChain({ slotsInAnEpoch: 2 });
  await mine(chain, 10);
  const opened = Array.from({ length: count }, () => startAlteringProxy({ target: chain.url }));
  const proxies = await Promise.all(opened);
  const asked = proxies.map(() => 0);
  const alterTag = (index: number, alter: (result: unknown) => unknown) => {
    const altered: Alter = (method, params, result) => {
      if (!isTag(method, params)) return result;
      asked[index] = (asked[index] ?? 0) + 1;
      return alter(result);
    };
    proxies[index]?.alter(altered);
  };
  for (const index of proxies.keys()) alterTag(index, (result) => result);
  const plain = await makeTransfersFixture(chain);
  const assets = plain.evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: String(LARGE) }));
  const change = { finality: "safe", assets };
  const fixture = await makeTransfersFixture(chain, { rpcUrls: proxies.map(({ url }) => url), change });
  fixture.clock.stop();
  await fixture.watch();
  await fixture.watch();
  const pay = async (amount: bigint) => {
    const one = await fixture.sign(await fundBuyer(chain), amount);
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
  return { chain, fixture, alterTag, pay, watchAfter, countLone, asked };
}

/** Alters the final block that an endpoint reports, from a block that it has reported before. */
const faults: Record<string, (before: object) => (result: unknown) => unknown> = {
  "the same old one": (before) => () => before,
  "one that advances too slowly": (before) => {
    let calls = 0;
    return () => {
      calls += 1;
      return { ...before, number: numberToHex(Number((before as Numbered).number) + Math.floor(calls / 4)) };
    };
  },
  none: () => () => null,
  "one that cannot be read": (before) => () => ({ ...before, baseFeePerGas: "zz" }),
  "an error": () => () => new RpcRefusal({ code: -39_001, message: "safe block not found" }),
};

describe.each(Object.entries(faults))("the first endpoint reports as the final block: %s", (_what, makeFault) => {
  test("small payments go on after a wait with the second endpoint, and large ones wait for the first one", async () => {
    const { chain, fixture, alterTag, pay, watchAfter, countLone } = await startEndpoints();
    const before = await readTag(chain, "safe");
    alterTag(0, makeFault(before));
    for (let pass = 0; pass < 3; pass += 1) await watchAfter(0, 10);
    const [small, large] = [await pay(LARGE - 1n), await pay(LARGE)];
    await watchAfter(0, 10);
    await watchAfter(WAIT_MS - 1);
    expect(await fixture.statesOf([small, large])).toEqual(["included", "included"]);
    expect(await countLone()).toBe(0);
    // An old height is compared after one wait, and passed over after another one.
    for (let pass = 0; pass < 3; pass += 1) await watchAfter(WAIT_MS);
    expect(await fixture.statesOf([small, large])).toEqual(["confirmed", "included"]);
    expect(await countLone()).toBeGreaterThan(0);

    const next = await pay(LARGE - 1n);
    await watchAfter(0);
    await watchAfter(0);
    expect(await fixture.statesOf([next]), "the first endpoint is not waited for again").toEqual(["confirmed"]);

    alterTag(0, (result) => result);
    await watchAfter(0);
    expect(await fixture.statesOf([large])).toEqual(["confirmed"]);
    const counted = await countLone();
    for (let pass = 0; pass < 3; pass += 1) await watchAfter(0);
    expect(await countLone(), "two endpoints report the heights again").toBe(counted);
  });
});

test.each([0, 1])("endpoint %i cannot invent finality at once, and never for a large payment", async (liar) => {
  const { chain, fixture, alterTag, pay, watchAfter } = await startEndpoints();
  const latest = await readTag(chain, "latest");
  alterTag(liar, () => ({ ...latest, number: numberToHex(10_000) }));
  // The other one stands still, so that no time makes the block final.
  alterTag(1 - liar, () => latest);
  await watchAfter(0);
  const [small, large] = [await pay(LARGE - 1n), await pay(LARGE)];
  await watchAfter(0);
  expect(await fixture.statesOf([small, large])).toEqual(["included", "included"]);
  await watchAfter(WAIT_MS);
  await fixture.watch();
  fixture.clock.advance(WAIT_MS - 1);
  await fixture.watch();
  if (liar === 1) expect(await fixture.statesOf([small])).toEqual(["included"]);
  for (let pass = 0; pass < 3; pass += 1) await watchAfter(WAIT_MS);
  expect(await fixture.statesOf([small, large])).toEqual(["confirmed", "included"]);
});

test("two endpoints that agree decide without a wait while the first of three reports an old final block", async () => {
  const { chain, fixture, alterTag, pay, watchAfter, countLone } = await startEndpoints(3);
  const before = await readTag(chain, "safe");
  alterTag(0, () => before);
  const large = await pay(LARGE);
  await mine(chain, 20);
  await watchAfter(0);
  expect(await fixture.statesOf([large])).toEqual(["included"]);
  await watchAfter(WAIT_MS);
  expect(await fixture.statesOf([large])).toEqual(["confirmed"]);
  expect(await countLone()).toBe(0);
});

test("the second endpoint is asked for its final block only when the first one reports a new one", async () => {
  const { chain, fixture, alterTag, watchAfter, asked, countLone } = await startEndpoints();
  const countAsked = async (ms: number) => {
    const [first = 0, second = 0] = asked;
    await watchAfter(ms);
    return [(asked[0] ?? 0) - first, (asked[1] ?? 0) - second];
  };
  for (let pass = 0; pass < 4; pass += 1) {
    const [first = 0, second = 0] = await countAsked(WAIT_MS / 10);
    expect(second, "each new final block is compared once").toBeLessThanOrEqual(first);
  }
  alterTag(0, (result) => ({ ...(result as object), number: numberToHex(Number((result as Numbered).number) - 1) }));
  for (let pass = 0; pass < 4; pass += 1) {
    const [first = 0, second = 0] = await countAsked(WAIT_MS / 2);
    expect(second, "the first endpoint is behind by one block").toBeLessThanOrEqual(first);
  }
  const frozen = await readTag(chain, "safe");
  for (const index of [0, 1]) alterTag(index, () => frozen);
  await watchAfter(0);
  expect(await countAsked(0)).toEqual([1, 0]);
  expect(await countAsked(WAIT_MS / 2)).toEqual([1, 0]);
  expect(await countAsked(WAIT_MS / 2), "it stands still").toEqual([1, 1]);
  expect(await countAsked(WAIT_MS - 1)).toEqual([1, 0]);
  expect(await countLone()).toBe(0);
  expect((await fixture.cursor()).finalNumber).toBeGreaterThan(0);
});
