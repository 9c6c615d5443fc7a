import { hexToNumber } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { makeTransfersFixture, type TransfersFixture } from "../../../support/transfers-fixture.ts";

const cursorOf = ({ db }: TransfersFixture) => db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
const countConfirmed = async ({ db }: TransfersFixture) =>
  (await db.selectFrom("transfer").select("id").where("state", "=", "confirmed").execute()).length;

type Filter = { fromBlock?: `0x${string}`; toBlock?: `0x${string}`; blockHash?: string };

/** Returns the range of blocks whose logs a call reads, if it reads a range. */
function rangeOf(method: string, params: unknown[]): { from: number; to: number } | undefined {
  const { fromBlock, toBlock } = (params[0] ?? {}) as Filter;
  if (method !== "eth_getLogs" || !fromBlock || !toBlock) return undefined;
  return { from: hexToNumber(fromBlock), to: hexToNumber(toBlock) };
}

/** A chain whose `finalized` stands still until `letFinalityGo`, behind an endpoint that limits ranges of logs. */
async function startLimited({ mostBlocks }: { mostBlocks: number }) {
  const chain = await startChain({ slotsInAnEpoch: 1 });
  const altering = await startAlteringProxy({ target: chain.url });
  const proxy = await startFaultProxy({ target: altering.url });
  const frozen = await chain.client.request({ method: "eth_getBlockByNumber", params: ["latest", false] } as never);
  const isFinal = (method: string, params: unknown[]) => method === "eth_getBlockByNumber" && params[0] === "finalized";
  let hide: string | undefined;
  let hold = true;
  altering.alter((method, params, result) => {
    if (isFinal(method, params)) return hold ? frozen : result;
    if (hide === undefined || !rangeOf(method, params)) return result;
    return (result as { blockNumber: string; logIndex: string }[]).filter(
      (log) => `${hexToNumber(log.blockNumber as "0x")}/${hexToNumber(log.logIndex as "0x")}` !== hide,
    );
  });
  const asked: { from: number; to: number }[] = [];
  let refusedAbove = Number.POSITIVE_INFINITY;
  proxy.fail(({ method, params }) => {
    const range = rangeOf(method, params);
    if (!range) return undefined;
    asked.push(range);
    if (range.to - range.from >= mostBlocks) return { code: -32_005, message: "query exceeds the limit of blocks" };
    return range.to > refusedAbove ? { code: -32_000, message: "no logs of these blocks today" } : undefined;
  });
  const fixture = await makeTransfersFixture(chain, {
    rpcUrls: [proxy.url],
    change: { finality: "finalized", batchGas: 16_000_000, logRange: 50 },
  });
  return {
    chain,
    fixture,
    asked,
    letFinalityGo: () => {
      hold = false;
    },
    /** Makes ranges leave out one log from now on. */
    hideLog: (one: { block_number: number; log_index: number } | undefined) => {
      hide = one && `${one.block_number}/${one.log_index}`;
    },
    refuseAbove: (block: number) => {
      refusedAbove = block;
    },
  };
}

/** A test with more than a thousand transfers or blocks takes long when others run beside it. */
const SLOW_MS = 600_000;

/** Makes `count` transfers that are included and read, in several blocks. */
async function includeTransfers(chain: TestChain, fixture: TransfersFixture, count: number): Promise<string[]> {
  const buyer = await fundBuyer(chain, 10_000_000_000n);
  const ids = (await fixture.signAll(Array.from({ length: count }, () => buyer))).map(({ id }) => id);
  for (let ready = count; ready > 0; ) {
    await fixture.relay();
    ready = (await fixture.statesOf(ids)).filter((state) => state === "ready").length;
  }
  await fixture.watch();
  return ids;
}

test("a final height that jumps by hundreds of blocks is read again in parts, and every transfer in them is compared", {
  timeout: SLOW_MS,
}, async () => {
  const limited = await startLimited({ mostBlocks: 20 });
  const { chain, fixture, asked } = limited;
  const ids = await includeTransfers(chain, fixture, 1_100);
  await mine(chain, 300);
  for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["included"]));
  const { final_number: before } = await cursorOf(fixture);
  expect((await cursorOf(fixture)).number).toBeGreaterThan(before + 300);

  // The last log is not found again: transfers in earlier blocks may be confirmed, and none of its block.
  const last = (await fixture.observations()).at(-1);
  if (!last) throw new Error("there is no observation");
  limited.hideLog(last);
  limited.letFinalityGo();
  asked.splice(0);
  const below = (await fixture.observations()).filter(({ block_number }) => block_number < last.block_number).length;
  for (let pass = 0; pass < 2; pass += 1)
    await expect(fixture.watch()).rejects.toMatchObject({
      code: "rpc_behind",
      message: expect.stringContaining(`block ${last.block_number}`),
    });
  expect(await countConfirmed(fixture)).toBeLessThanOrEqual(below);
  expect((await cursorOf(fixture)).final_number).toBeLessThan(last.block_number);
  expect((await fixture.rowsOf([last.transfer_id ?? ""]))[0]?.state).toBe("included");

  limited.hideLog(undefined);
  await fixture.watch();
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect(fixture.confirmed).toHaveLength(ids.length);
  expect(new Set(fixture.confirmed.map(({ id }) => id)).size).toBe(ids.length);
  expect((await fixture.transactions()).every(({ state }) => state === "final")).toBe(true);
  const taken = asked.filter(({ from, to }) => to - from < 20);
  expect(taken.length).toBeGreaterThan(15);
});

test("a final height that stands still while the head moves on shows as a lag of finality, and the watcher is not behind", async () => {
  const limited = await startLimited({ mostBlocks: 1_000 });
  const { chain, fixture } = limited;
  const readLags = async () => {
    for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
    return (await readSystemStatus(fixture.deps)).chains[0];
  };
  await mine(chain, 30);
  const before = await readLags();
  await mine(chain, 300);
  const after = await readLags();
  const grown = (after?.finalLagSeconds ?? 0) - (before?.finalLagSeconds ?? 0);
  expect(grown).toBe((300 * fixture.evm.network.blockMs) / 1_000);
  expect(after?.lagSeconds).toBeLessThan(60);
  expect(after?.finalitySeconds).toBe(1_800);
  limited.letFinalityGo();
  expect((await readLags())?.finalLagSeconds).toBeLessThan(grown / 10);
});

test("blocks that were read again before an endpoint fails are booked and stored as final", async () => {
  const limited = await startLimited({ mostBlocks: 10 });
  const { chain, fixture } = limited;
  const first = await includeTransfers(chain, fixture, 1);
  await mine(chain, 60);
  const second = await includeTransfers(chain, fixture, 1);
  await mine(chain, 60);
  for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
  const { final_number: before } = await cursorOf(fixture);
  const broken = before + 45;
  limited.refuseAbove(broken);
  limited.letFinalityGo();
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_answer" });
  expect((await cursorOf(fixture)).final_number).toBe(broken);
  expect(await fixture.statesOf([...first, ...second])).toEqual(["confirmed", "included"]);
  limited.refuseAbove(Number.POSITIVE_INFINITY);
  await fixture.watch();
  expect(await fixture.statesOf([...first, ...second])).toEqual(["confirmed", "confirmed"]);
  const { number, final_number } = await cursorOf(fixture);
  expect(final_number).toBeGreaterThan(number - 3);
});

test("a final height that jumps by more than a thousand blocks takes several bounded passes", {
  timeout: SLOW_MS,
}, async () => {
  const limited = await startLimited({ mostBlocks: 1_000 });
  const { chain, fixture } = limited;
  await mine(chain, 1_200);
  const behind = async () => {
    const { number, final_number } = await cursorOf(fixture);
    return number - final_number;
  };
  for (let pass = 0; pass < 4; pass += 1) await fixture.watch();
  expect(await behind()).toBeGreaterThanOrEqual(1_200);
  limited.letFinalityGo();
  await fixture.watch();
  const left = await behind();
  expect(left).toBeGreaterThan(100);
  expect(left).toBeLessThan(1_100);
  await fixture.watch();
  expect(await behind()).toBeLessThan(5);
});

test("a long gap is read in parts that the endpoint allows, and the transfer in it is found", async () => {
  const limited = await startLimited({ mostBlocks: 7 });
  const { chain, fixture, asked } = limited;
  limited.letFinalityGo();
  await mine(chain, 20);
  await fixture.watch();
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await mine(chain, 150);
  asked.splice(0);
  for (let pass = 0; pass < 3; pass += 1) await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect(asked.filter(({ from, to }) => to - from < 7).length).toBeGreaterThan(20);
});
