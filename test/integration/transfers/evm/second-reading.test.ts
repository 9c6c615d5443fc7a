import { type Hex, numberToHex, pad, type RpcLog } from "viem";
import { describe, expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, sendUsdc, startChain, type TestChainOptions } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

const LARGE = 500_000_000n;

/** A chain with two endpoints: the first one's results can be altered, and the second one can be unavailable or lag. */
async function startTwoEndpoints(change: Record<string, unknown> = {}, options: TestChainOptions = {}) {
  const chain = await startChain(options);
  const first = await startAlteringProxy({ target: chain.url });
  const firstAway = await startFaultProxy({ target: first.url });
  const second = await startAlteringProxy({ target: chain.url });
  const away = await startFaultProxy({ target: second.url });
  const plain = await makeTransfersFixture(chain);
  const assets = plain.evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: String(LARGE) }));
  const rpcUrls = [firstAway.url, away.url];
  const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { assets, ...change } });
  await fixture.watch();
  const isConfirmed = async (id: string) => (await fixture.statesOf([id]))[0] === "confirmed";
  /** Runs a pass of the watcher; an endpoint's result may end it with a transient error. */
  const watch = () => fixture.watch().catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
  const watchUntilConfirmed = (id: string) =>
    waitFor(
      async () => {
        await watch();
        return isConfirmed(id);
      },
      { within: 20_000 },
    );
  const count = async (metric: "endpointDisagreements" | "agreementWaits" | "singleEndpointConfirmations") =>
    (await fixture.deps.metrics[metric].get()).values.reduce((sum, { value }) => sum + value, 0);
  return { chain, rpcUrls, away, firstAway, first, second, fixture, isConfirmed, watch, watchUntilConfirmed, count };
}
type TwoEndpoints = Awaited<ReturnType<typeof startTwoEndpoints>>;

/** Returns logs of a transfer in a block that does not contain them. */
async function inventLogs(
  { chain, fixture }: TwoEndpoints,
  id: string,
): Promise<{ logs: RpcLog[]; block: { hash: Hex } }> {
  const [row] = await fixture.rowsOf([id]);
  if (!row) throw new Error("there is no transfer");
  await mine(chain);
  const block = await chain.client.getBlock();
  const log = (index: number, topics: Hex[], data: Hex): RpcLog => ({
    address: row.token as Hex,
    topics: topics as never,
    data,
    blockHash: block.hash,
    removed: false,
    blockNumber: numberToHex(block.number),
    transactionHash: `0x${"77".repeat(32)}`,
    transactionIndex: "0x0",
    logIndex: numberToHex(index),
    blockTimestamp: numberToHex(block.timestamp),
  });
  const payer = pad(row.payer as Hex);
  const logs = [
    log(0, [AUTHORIZATION_USED_TOPIC, payer, row.authorization_nonce as Hex], "0x"),
    log(1, [TRANSFER_TOPIC, payer, pad(row.receiver as Hex)], pad(numberToHex(row.amount))),
  ];
  return { logs, block };
}

/** Makes an endpoint return invented logs whenever their block or their transaction is read. */
function injectLogs(proxy: TwoEndpoints["first"], { logs, block }: Awaited<ReturnType<typeof inventLogs>>) {
  const at = Number(logs[0]?.blockNumber);
  const hash = logs[0]?.transactionHash;
  const receipt = {
    blockHash: block.hash,
    blockNumber: numberToHex(at),
    gasUsed: "0x1",
    effectiveGasPrice: "0x1",
    logs,
  };
  proxy.alter((method, params, result) => {
    if (method === "eth_getTransactionReceipt" && params[0] === hash) return { ...receipt, status: "0x1" };
    if (method !== "eth_getLogs") return result;
    const { blockHash, fromBlock, toBlock } = params[0] as { blockHash?: string; fromBlock?: Hex; toBlock?: Hex };
    const isAsked = blockHash === block.hash || (Number(fromBlock) <= at && at <= Number(toBlock));
    return isAsked ? [...(result as RpcLog[]), ...logs] : result;
  });
}

describe.each([{ blocks: 1 }, { blocks: 3 }])("a chain with two endpoints (finality %j)", (finality) => {
  test.each(["first", "second"] as const)(
    "a transfer that the %s endpoint invents is never booked, and reverted once the endpoint is honest",
    async (liar) => {
      const two = await startTwoEndpoints({ finality });
      const { chain, fixture, watch, watchUntilConfirmed, count } = two;
      const one = await fixture.sign(await fundBuyer(chain));
      injectLogs(two[liar], await inventLogs(two, one.id));
      for (let pass = 0; pass < 6; pass += 1) {
        await watch();
        await mine(chain);
      }
      expect(await fixture.statesOf([one.id])).toEqual(["included"]);
      expect(fixture.confirmed).toEqual([]);
      expect(await count("endpointDisagreements")).toBeGreaterThan(0);
      two[liar].alter(undefined);
      await watch();
      expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
      await relayByThirdParty(chain, one.call);
      await mine(chain, 3);
      await watchUntilConfirmed(one.id);
      expect(fixture.confirmed).toHaveLength(1);
    },
  );

  test.each(["first", "second"] as const)(
    "a deposit that the %s endpoint invents is not booked as an exception",
    async (liar) => {
      const two = await startTwoEndpoints({ finality });
      const { chain, fixture, watch } = two;
      const one = await fixture.sign(await fundBuyer(chain));
      const invented = await inventLogs(two, one.id);
      injectLogs(two[liar], { ...invented, logs: invented.logs.slice(1) });
      for (let pass = 0; pass < 5; pass += 1) {
        await watch();
        await mine(chain);
      }
      expect(fixture.unmatched).toEqual([]);
      expect(await fixture.observations()).toHaveLength(1);
    },
  );

  test("a transfer whose logs one endpoint hides is found through the other", async () => {
    const { chain, first, fixture, watchUntilConfirmed } = await startTwoEndpoints({ finality });
    first.alter((method, _params, result) => (method === "eth_getLogs" ? [] : result));
    const one = await fixture.sign(await fundBuyer(chain));
    await relayByThirdParty(chain, one.call);
    await mine(chain, 3);
    await watchUntilConfirmed(one.id);
  });

  test("a payment is not booked by a deposit of one unit whose amount and authorization one endpoint invents", async () => {
    const { chain, first, fixture, watch, count } = await startTwoEndpoints({ finality });
    const buyer = await fundBuyer(chain);
    const { id } = await fixture.sign(buyer, LARGE - 1n);
    const [row] = await fixture.rowsOf([id]);
    const [payer, nonce] = [pad(buyer.address.toLowerCase() as Hex), row?.authorization_nonce as Hex];
    const isDeposit = ({ topics: [topic, from] }: RpcLog) => topic === TRANSFER_TOPIC && from === payer;
    const inflate = (log: RpcLog) => (isDeposit(log) ? { ...log, data: pad(numberToHex(LARGE - 1n)) } : log);
    first.alter((method, _params, result) => {
      if (method === "eth_getLogs") return (result as RpcLog[]).map(inflate);
      const { logs = [] } = (method === "eth_getTransactionReceipt" && (result as { logs: RpcLog[] })) || {};
      const deposit = logs.find(isDeposit);
      if (!deposit) return result;
      const used = { ...deposit, topics: [AUTHORIZATION_USED_TOPIC, payer, nonce], data: "0x", logIndex: "0x63" };
      return { ...(result as object), logs: [...logs.map(inflate), used] };
    });
    await sendUsdc(chain, buyer, fixture.evm.treasury, 1n);
    for (let pass = 0; pass < 6; pass += 1) {
      await watch();
      await mine(chain);
    }
    expect([fixture.confirmed, fixture.unmatched]).toEqual([[], []]);
    expect(await count("endpointDisagreements")).toBeGreaterThan(0);
  });

  test("a transfer does not expire by a timestamp that one endpoint invents", async () => {
    const { chain, first, fixture, watch, watchUntilConfirmed, count } = await startTwoEndpoints({ finality });
    const one = await fixture.sign(await fundBuyer(chain));
    first.alter((method, _params, result) =>
      method === "eth_getBlockByNumber" && result ? { ...result, timestamp: numberToHex(4_100_000_000) } : result,
    );
    for (let pass = 0; pass < 5; pass += 1) {
      await mine(chain);
      await watch();
    }
    expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
    expect(await count("endpointDisagreements")).toBeGreaterThan(0);
    first.alter(undefined);
    await relayByThirdParty(chain, one.call);
    await mine(chain, 3);
    await watchUntilConfirmed(one.id);
  });

  test("an unavailable endpoint delays no small payment, and a large one waits until it is back", async () => {
    const { chain, away, fixture, watch, watchUntilConfirmed, isConfirmed, count } = await startTwoEndpoints({
      finality,
    });
    away.refuse(true);
    const [small, large] = [
      await fixture.sign(await fundBuyer(chain), LARGE - 1n),
      await fixture.sign(await fundBuyer(chain), LARGE),
    ];
    for (const { call } of [small, large]) await relayByThirdParty(chain, call);
    await mine(chain, 3);
    await watchUntilConfirmed(small.id);
    await mine(chain, 3);
    await watch();
    expect(await isConfirmed(large.id)).toBe(false);
    expect(await count("agreementWaits")).toBeGreaterThan(0);
    expect(await count("singleEndpointConfirmations")).toBeGreaterThan(0);
    away.refuse(false);
    await mine(chain);
    await watchUntilConfirmed(large.id);
    expect(fixture.confirmed).toHaveLength(2);
  });

  test("a large unmatched deposit is booked once both endpoints show it", async () => {
    const { chain, away, fixture, watch } = await startTwoEndpoints({ finality });
    away.refuse(true);
    await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, LARGE);
    await mine(chain, 3);
    await watch();
    await watch();
    expect(fixture.unmatched).toEqual([]);
    away.refuse(false);
    const isBooked = async () => {
      await watch();
      return fixture.unmatched.length === 1;
    };
    await waitFor(isBooked, { within: 20_000 });
  });
});

test("a movement that only the second reading shows is booked by that endpoint alone once the other one was away for a while", async () => {
  const { chain, first, firstAway, fixture, watch, watchUntilConfirmed, isConfirmed } = await startTwoEndpoints({
    finality: { blocks: 3 },
  });
  first.alter((method, _params, result) => (method === "eth_getLogs" ? [] : result));
  const { id, call } = await fixture.sign(await fundBuyer(chain));
  await relayByThirdParty(chain, call);
  await watch();
  firstAway.refuse(true);
  await mine(chain, 3);
  const isIncluded = async () => {
    await watch();
    return (await fixture.statesOf([id]))[0] === "included";
  };
  await waitFor(isIncluded, { within: 20_000 });
  await watch();
  expect(await isConfirmed(id)).toBe(false);
  fixture.clock.advance(31_000);
  await watchUntilConfirmed(id);
});

test("a movement that only the second reading shows is booked although the other endpoint has dropped the receipt", async () => {
  const { chain, first, fixture, watchUntilConfirmed } = await startTwoEndpoints();
  let isHidden = true;
  first.alter((method, _params, result) => {
    if (method === "eth_getTransactionReceipt") return null;
    return method === "eth_getLogs" && isHidden ? [] : result;
  });
  const { id, call } = await fixture.sign(await fundBuyer(chain));
  await relayByThirdParty(chain, call);
  await fixture.watch();
  isHidden = false;
  await mine(chain, 3);
  await watchUntilConfirmed(id);
});

/** Counts the reads of logs by range, as second readings make them. */
function countRanges(proxy: TwoEndpoints["first"]): () => number {
  let ranges = 0;
  proxy.alter((method, params, result) => {
    if (method === "eth_getLogs" && "fromBlock" in (params[0] as object)) ranges += 1;
    return result;
  });
  return () => ranges;
}

test("the second reading of a block uses another endpoint than the first, whichever that was", async () => {
  const { chain, firstAway, first, second, fixture, watch, watchUntilConfirmed } = await startTwoEndpoints({
    finality: { blocks: 3 },
  });
  const ranges = { first: countRanges(first), second: countRanges(second) };
  const one = await fixture.sign(await fundBuyer(chain));
  await relayByThirdParty(chain, one.call);
  await mine(chain, 3);
  await watchUntilConfirmed(one.id);
  expect([ranges.first(), ranges.second() > 0]).toEqual([0, true]);

  firstAway.refuse(true);
  const other = await fixture.sign(await fundBuyer(chain));
  await relayByThirdParty(chain, other.call);
  await watch();
  expect(await fixture.statesOf([other.id])).toEqual(["included"]);
  firstAway.refuse(false);
  const before = firstAway.calls["eth_blockNumber"] ?? 0;
  const isBack = async () => {
    await watch();
    return (firstAway.calls["eth_blockNumber"] ?? 0) > before;
  };
  await waitFor(isBack, { within: 20_000 });
  await mine(chain, 3);
  await watchUntilConfirmed(other.id);
  expect(ranges.first()).toBeGreaterThan(0);
});

/** Makes an endpoint return nothing above a height. */
function stickAt(proxy: TwoEndpoints["second"], height: number) {
  proxy.alter((method, params, result) => {
    if (method === "eth_blockNumber") return numberToHex(height);
    const [which] = params as [unknown];
    if (method === "eth_getBlockByNumber" && typeof which === "string" && Number(which) > height) return null;
    if (
      method === "eth_getTransactionReceipt" &&
      Number((result as { blockNumber?: Hex } | null)?.blockNumber) > height
    )
      return null;
    return method === "eth_getLogs"
      ? (result as RpcLog[]).filter(({ blockNumber }) => Number(blockNumber) <= height)
      : result;
  });
}

describe("a second endpoint that lags", () => {
  test("a lagging second endpoint delays a confirmation only until it catches up", async () => {
    const { chain, second, fixture, watch, watchUntilConfirmed, isConfirmed, count } = await startTwoEndpoints();
    stickAt(second, Number(await chain.client.getBlockNumber()));
    const one = await fixture.sign(await fundBuyer(chain));
    await relayByThirdParty(chain, one.call);
    await watch();
    await watch();
    expect(await isConfirmed(one.id)).toBe(false);
    expect(await count("endpointDisagreements")).toBe(0);
    second.alter(undefined);
    await watchUntilConfirmed(one.id);
    expect(await count("singleEndpointConfirmations")).toBe(0);
  });

  test("a second endpoint that stays behind is skipped after a while, but not for large amounts", async () => {
    const { chain, second, fixture, watch, watchUntilConfirmed, isConfirmed } = await startTwoEndpoints();
    stickAt(second, Number(await chain.client.getBlockNumber()));
    const small = await fixture.sign(await fundBuyer(chain));
    const large = await fixture.sign(await fundBuyer(chain), LARGE);
    for (const { call } of [small, large]) await relayByThirdParty(chain, call);
    await watch();
    fixture.clock.advance(31_000);
    await watchUntilConfirmed(small.id);
    await mine(chain);
    await watch();
    expect(await isConfirmed(large.id)).toBe(false);

    // The next payments do not wait for it again.
    const next = await fixture.sign(await fundBuyer(chain));
    await relayByThirdParty(chain, next.call);
    await watch();
    await watch();
    expect(await isConfirmed(next.id)).toBe(true);
  });

  test("a second endpoint that is behind for a moment is waited for, although another worker's pass saw it catch up before", async () => {
    const two = await startTwoEndpoints();
    const { chain, second, fixture, isConfirmed, watch, watchUntilConfirmed, count } = two;
    const { databaseUrl, clock } = fixture;
    const other = await makeTransfersFixture(chain, { rpcUrls: two.rpcUrls, databaseUrl, clock });
    const relayBehind = async () => {
      const one = await fixture.sign(await fundBuyer(chain));
      stickAt(second, Number(await chain.client.getBlockNumber()));
      await relayByThirdParty(chain, one.call);
      await watch();
      await watch();
      expect(await isConfirmed(one.id)).toBe(false);
      second.alter(undefined);
      return one;
    };
    const one = await relayBehind();
    await waitFor(
      async () => {
        await other.watch().catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
        return isConfirmed(one.id);
      },
      { within: 20_000 },
    );
    clock.advance(31_000);
    await watchUntilConfirmed((await relayBehind()).id);
    expect(await count("singleEndpointConfirmations")).toBe(0);
  });
});

test("the lower of two endpoints' final heights counts, so one endpoint cannot invent finality", async () => {
  const two = await startTwoEndpoints({ finality: "finalized" }, { slotsInAnEpoch: 3 });
  const { chain, first, fixture, watch, watchUntilConfirmed, isConfirmed } = two;
  first.alter((method, [which], result) =>
    method === "eth_getBlockByNumber" && which === "finalized"
      ? { ...(result as object), number: numberToHex(10_000) }
      : result,
  );
  const one = await fixture.sign(await fundBuyer(chain));
  await relayByThirdParty(chain, one.call);
  await mine(chain, 2);
  await watch();
  await watch();
  expect(await isConfirmed(one.id)).toBe(false);
  await mine(chain, 8);
  await watchUntilConfirmed(one.id);
});

test("a chain with one endpoint reports that in a metric, and its transfers are confirmed by that endpoint alone", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const { values } = await fixture.deps.metrics.chainEndpoints.get();
  expect(values.map(({ value }) => value)).toEqual([1]);
  const one = await fixture.sign(await fundBuyer(chain), 900_000_000n);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});
