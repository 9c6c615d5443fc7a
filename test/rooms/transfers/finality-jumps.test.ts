import { hexToNumber } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { type Carrier, makeCarrier } from "../../support/carry.ts";
import { fundBuyer, mine, startChain, type TestChain } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

const cursorOf = ({ db }: Carrier) => db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
const countConfirmed = async ({ db }: Carrier) =>
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
  const carrier = await makeCarrier(chain, {
    rpcUrls: [proxy.url],
    change: { finality: "finalized", batchGas: 20_000_000 },
  });
  return {
    ...{ chain, carrier, asked },
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
const SLOW_MS = 180_000;

/** Makes `count` transfers that are included and read, in several blocks. */
async function includeTransfers(chain: TestChain, carrier: Carrier, count: number): Promise<string[]> {
  const buyer = await fundBuyer(chain, 10_000_000_000n);
  const signed = await Promise.all(Array.from({ length: count }, () => carrier.sign(buyer)));
  const ids = signed.map(({ id }) => id);
  for (let ready = count; ready > 0; ) {
    await carrier.relay();
    ready = (await carrier.statesOf(ids)).filter((state) => state === "ready").length;
  }
  await carrier.watch();
  return ids;
}

test("a final height that jumps by hundreds of blocks is read again in parts, and every transfer in them is compared", {
  timeout: SLOW_MS,
}, async () => {
  const limited = await startLimited({ mostBlocks: 20 });
  const { chain, carrier, asked } = limited;
  const ids = await includeTransfers(chain, carrier, 1_100);
  await mine(chain, 300);
  for (let pass = 0; pass < 2; pass += 1) await carrier.watch();
  expect(new Set(await carrier.statesOf(ids))).toEqual(new Set(["included"]));
  const { final_number: before } = await cursorOf(carrier);
  expect((await cursorOf(carrier)).number).toBeGreaterThan(before + 300);

  // The last log is not found again: transfers in earlier blocks may be confirmed, and none of its block.
  const last = (await carrier.sightings()).at(-1);
  if (!last) throw new Error("there is no observation");
  limited.hideLog(last);
  limited.letFinalityGo();
  asked.splice(0);
  const below = (await carrier.sightings()).filter(({ block_number }) => block_number < last.block_number).length;
  for (let pass = 0; pass < 2; pass += 1)
    await expect(carrier.watch()).rejects.toMatchObject({
      code: "rpc_behind",
      message: expect.stringContaining(`block ${last.block_number}`),
    });
  expect(await countConfirmed(carrier)).toBeLessThanOrEqual(below);
  expect((await cursorOf(carrier)).final_number).toBeLessThan(last.block_number);
  expect((await carrier.rowsOf([last.transfer_id ?? ""]))[0]?.state).toBe("included");

  limited.hideLog(undefined);
  await carrier.watch();
  expect(new Set(await carrier.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect(carrier.confirmed).toHaveLength(ids.length);
  expect(new Set(carrier.confirmed.map(({ id }) => id)).size).toBe(ids.length);
  expect((await carrier.transactions()).every(({ state }) => state === "final")).toBe(true);
  const taken = asked.filter(({ from, to }) => to - from < 20);
  expect(taken.length).toBeGreaterThan(15);
});

test("blocks that were read again before an endpoint fails are booked and stored as final", async () => {
  const limited = await startLimited({ mostBlocks: 10 });
  const { chain, carrier } = limited;
  const first = await includeTransfers(chain, carrier, 1);
  await mine(chain, 60);
  const second = await includeTransfers(chain, carrier, 1);
  await mine(chain, 60);
  for (let pass = 0; pass < 2; pass += 1) await carrier.watch();
  const { final_number: before } = await cursorOf(carrier);
  const broken = before + 45;
  limited.refuseAbove(broken);
  limited.letFinalityGo();
  await expect(carrier.watch()).rejects.toMatchObject({ code: "rpc_answer" });
  expect((await cursorOf(carrier)).final_number).toBe(broken);
  expect(await carrier.statesOf([...first, ...second])).toEqual(["confirmed", "included"]);
  limited.refuseAbove(Number.POSITIVE_INFINITY);
  await carrier.watch();
  expect(await carrier.statesOf([...first, ...second])).toEqual(["confirmed", "confirmed"]);
  const { number, final_number } = await cursorOf(carrier);
  expect(final_number).toBeGreaterThan(number - 3);
});

test("a final height that jumps by more than a thousand blocks takes several bounded passes", {
  timeout: SLOW_MS,
}, async () => {
  const limited = await startLimited({ mostBlocks: 1_000 });
  const { chain, carrier } = limited;
  await mine(chain, 1_200);
  const behind = async () => {
    const { number, final_number } = await cursorOf(carrier);
    return number - final_number;
  };
  for (let pass = 0; pass < 4; pass += 1) await carrier.watch();
  expect(await behind()).toBeGreaterThanOrEqual(1_200);
  limited.letFinalityGo();
  await carrier.watch();
  const left = await behind();
  expect(left).toBeGreaterThan(100);
  expect(left).toBeLessThan(1_100);
  await carrier.watch();
  expect(await behind()).toBeLessThan(5);
});

test("a long gap is read in parts that the endpoint allows, and the transfer in it is found", async () => {
  const limited = await startLimited({ mostBlocks: 7 });
  const { chain, carrier, asked } = limited;
  limited.letFinalityGo();
  await mine(chain, 20);
  await carrier.watch();
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  await mine(chain, 150);
  asked.splice(0);
  for (let pass = 0; pass < 3; pass += 1) await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(asked.filter(({ from, to }) => to - from < 7).length).toBeGreaterThan(20);
});
