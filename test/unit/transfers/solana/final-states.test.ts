import { setTimeout as delay } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { findFinalState, readFinalState } from "../../../../transfers/solana/final-states.ts";

const WAIT_MS = 30_000;

/** Opens a cluster whose endpoints report these final slots. `served` is the newest slot that has a time. Returns the one that counts. */
function openCluster({ reported, served }: { reported: number[]; served: number }) {
  let now = 0;
  const counter = { inc: () => undefined };
  const deps = {
    metrics: { singleEndpointConfirmations: counter },
    log: { warn: () => undefined },
    now: () => new Date(now),
  } as never;
  const call =
    (slot: number) =>
    async (method: string, [asked]: readonly unknown[]) => {
      if (method === "getBlockTime") return (asked as number) <= served ? 1 : null;
      return { absoluteSlot: slot, blockHeight: slot };
    };
  const rpc = {
    ask: async (_method: string, question: (...args: unknown[]) => unknown) =>
      question({}, call(reported[0] ?? 0), "0"),
    queryAvailable: (_method: string, question: (...args: unknown[]) => unknown) =>
      Promise.all(reported.map(async (slot, by) => ({ by, answer: await question({}, call(slot), String(by)) }))),
  };
  const network = { rpc: reported, slotMs: 400 };
  const chain = { chain: "solana:test", rpc, network } as unknown as SolanaChain;
  return async (later: number) => {
    now += later;
    return (await readFinalState(deps, chain)).slot;
  };
}

test.each([
  { what: "two endpoints have reached counts at once", reported: [100, 200, 200], served: 200, slots: [200, 200] },
  { what: "one of two reports counts after a wait", reported: [100, 200], served: 200, slots: [100, 200] },
  {
    what: "one of two reports and none serves counts never",
    reported: [200, 1_000_200],
    served: 200,
    slots: [200, 200],
  },
  { what: "one of three reports counts never", reported: [200, 100, 100], served: 200, slots: [100, 100] },
  { what: "the only endpoint reports counts at once", reported: [200], served: 0, slots: [200, 200] },
])("a final slot that $what", async ({ reported, served, slots }) => {
  const read = openCluster({ reported, served });
  expect([await read(0), await read(WAIT_MS)]).toEqual(slots);
});

/** Opens a cluster whose endpoints report these final slots, which grow with each pass. Counts the passes in which one decides alone. */
function openPasses(finals: Record<string, number>, lateBy: Record<string, number> = {}) {
  let [now, alone] = [0, 0];
  const count = () => {
    alone += 1;
  };
  const singleEndpointConfirmations = { inc: count };
  const log = { warn: () => undefined };
  const deps = { metrics: { singleEndpointConfirmations }, log, now: () => new Date(now) } as never;
  const call = (by: string) => async (method: string) => {
    if (method === "getBlockTime") return 1;
    const state = { absoluteSlot: finals[by], blockHeight: finals[by] };
    const late = lateBy[by];
    if (late !== undefined) await delay(late, undefined, { ref: false });
    return state;
  };
  type Question = (...args: unknown[]) => Promise<unknown>;
  const queryAvailable = async (_method: string, question: Question) =>
    Promise.all(Object.keys(finals).map(async (by) => ({ by, answer: await question({}, call(by), by) })));
  const ask = async (_method: string, question: Question) => question({}, call("first"), "first");
  const network = { rpc: ["first", "second"], slotMs: 400 };
  const chain = { chain: "solana:test", rpc: { ask, queryAvailable }, network } as unknown as SolanaChain;
  return {
    countAlone: () => alone,
    /** Returns the final slot of the next pass. */
    async pass({ stuck, later = 2_000 }: { stuck?: string; later?: number } = {}): Promise<number> {
      now += later;
      for (const by of Object.keys(finals)) if (by !== stuck) finals[by] = (finals[by] ?? 0) + 5;
      return (await findFinalState(deps, chain)).slot;
    },
  };
}

const MINUTE = 30;

test("a final slot that one endpoint invents once takes no wait from later ones", async () => {
  const finals = { first: 1_000, second: 998 };
  const { countAlone, pass } = openPasses(finals);
  finals.first = 400_000_000;
  expect(await pass()).toBe(finals.second);
  finals.first = finals.second + 2;
  for (let passes = 0; passes < MINUTE; passes += 1) expect(await pass()).toBe(finals.second);
  expect(countAlone()).toBe(0);
});

test("the final slot of the only endpoint of two that answers is counted as one that it decides alone", async () => {
  const finals = { first: 1_000 };
  const { countAlone, pass } = openPasses(finals);
  expect(await pass()).toBe(finals.first);
  expect(countAlone()).toBe(1);
});

test("an endpoint that always answers late is heard in the next passes, so that a final slot goes on that stands still at the other one", async () => {
  const finals = { first: 1_000, second: 1_000 };
  const { pass } = openPasses(finals, { second: 1_200 });
  const slots: number[] = [];
  await vi.waitFor(
    async () => {
      slots.push(await pass({ stuck: "first", later: 4_500 }));
      expect(slots.at(-1)).toBeGreaterThan(1_000);
    },
    { timeout: 80_000, interval: 1 },
  );
});

test("a pass goes on without an endpoint that hangs", async () => {
  const finals = { first: 1_000, second: 1_000 };
  const { pass } = openPasses(finals, { second: 60_000 });
  const began = Date.now();
  expect(await pass()).toBe(finals.first);
  expect(Date.now() - began).toBeLessThan(30_000);
});
