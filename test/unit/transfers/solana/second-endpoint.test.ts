import { expect, test } from "vitest";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { keepAgreedMovements, lowerUnagreed } from "../../../../transfers/solana/second-endpoint.ts";

const PASS_MS = 2_000;

const finalIn = (slot: number) => ({ slot, err: null, confirmationStatus: "finalized", confirmations: null });

/** What an endpoint answers: the slot that it has reached, and the final slots of the transactions that it shows. */
type Endpoint = { reached: number; shown: Record<string, number> };

/** Opens a cluster whose endpoints answer what `endpoints` holds at the time, and the checks of one pass, each at a later time. */
function openPasses(endpoints: Record<string, Endpoint>) {
  let now = 0;
  const counter = { inc: () => undefined };
  const deps = {
    metrics: { endpointDisagreements: counter, agreementWaits: counter, singleEndpointConfirmations: counter },
    log: { error: () => undefined, warn: () => undefined },
    now: () => new Date(now),
  } as never;
  const call =
    (by: string) =>
    async (_method: string, [hashes]: readonly unknown[]) => ({
      context: { slot: endpoints[by]?.reached },
      value: (hashes as string[]).map((hash) => {
        const slot = endpoints[by]?.shown[hash];
        return slot === undefined ? null : finalIn(slot);
      }),
    });
  const names = Object.keys(endpoints);
  const queryAvailable = async (_method: string, question: (...args: unknown[]) => Promise<unknown>) =>
    Promise.all(names.map(async (by) => ({ by, answer: await question({}, call(by), by) })));
  const network = { finality: "finalized", rpc: names, slotMs: 400 };
  const chain = { chain: "solana:test", rpc: { queryAvailable }, tokens: new Map(), network } as unknown as SolanaChain;
  return {
    /** Returns true when a transaction of ours that the first endpoint shows as final counts as final. */
    async endsAsFinal(hash: string, slot: number): Promise<boolean> {
      now += PASS_MS;
      const row = { hash, state: "included", slot, reverted: false } as never;
      const status = { slot, depth: "finalized" as const, error: undefined };
      const [one] = await lowerUnagreed(deps, chain, [{ row, status, slot: 400 }]);
      return one?.status?.depth === "finalized";
    },
    /** Returns true when a movement may be booked. */
    async isBooked(hash: string, slot: number): Promise<boolean> {
      const movement = { hash, slot, token: "", amount: 1n, receiver: "", isOurs: false };
      return (await keepAgreedMovements(deps, chain, [movement], (one) => one)).length > 0;
    },
  };
}

/** Returns the milliseconds until a condition holds in a pass, undefined if it does not hold for two minutes. */
async function waitedFor(pass: () => Promise<boolean>): Promise<number | undefined> {
  for (let waited = 0; waited < 120_000; waited += PASS_MS) if (await pass()) return waited;
  return undefined;
}

test("a transaction waits half a minute for an endpoint that lags, also while that one denies another movement", async () => {
  const first = { reached: 400, shown: { old: 100, fresh: 300 } };
  const passes = openPasses({ first, lagging: { reached: 200, shown: {} } });
  const pass = async () => {
    const [isFinal, isBooked] = [await passes.endsAsFinal("fresh", 300), await passes.isBooked("fresh", 300)];
    expect(await passes.isBooked("old", 100)).toBe(false);
    return isFinal && isBooked;
  };
  expect(await waitedFor(pass)).toBe(30_000);
});

test("a transaction waits half a minute for an endpoint that lags, also while two agree about older ones", async () => {
  const first = { reached: 400, shown: { older: 100, fresh: 300 } };
  const passes = openPasses({ first, lagging: { reached: 200, shown: { older: 100 } } });
  const pass = async () => {
    const isFinal = await passes.endsAsFinal("fresh", 300);
    expect(await passes.endsAsFinal("older", 100)).toBe(true);
    return isFinal;
  };
  expect(await waitedFor(pass)).toBeLessThanOrEqual(30_000 + PASS_MS);
});

test("an endpoint that has caught up is waited for again when it lags once more", async () => {
  const first = { reached: 400, shown: { one: 300, two: 310, three: 320 } };
  const second: Endpoint = { reached: 200, shown: {} };
  const passes = openPasses({ first, second });
  expect(await waitedFor(() => passes.endsAsFinal("one", 300))).toBe(30_000);
  Object.assign(second, { reached: 310, shown: { one: 300, two: 310 } });
  expect(await waitedFor(() => passes.endsAsFinal("two", 310))).toBe(0);
  expect(await waitedFor(() => passes.endsAsFinal("three", 320))).toBe(30_000);
});

test("one endpoint alone decides nothing while two others answer and show less", async () => {
  const endpoints = {
    first: { reached: 400, shown: { fresh: 300 } },
    second: { reached: 200, shown: {} },
    third: { reached: 200, shown: {} } as Endpoint,
  };
  const passes = openPasses(endpoints);
  const both = async () => (await passes.endsAsFinal("fresh", 300)) || (await passes.isBooked("fresh", 300));
  expect(await waitedFor(both)).toBeUndefined();
  endpoints.third = { reached: 400, shown: { fresh: 300 } };
  expect([await passes.endsAsFinal("fresh", 300), await passes.isBooked("fresh", 300)]).toEqual([true, true]);
});

test("a slot that an endpoint invents takes no wait from later transactions for longer than an hour", async () => {
  const first = { reached: 400, shown: { invented: 2 ** 40, fresh: 20_000 } as Record<string, number> };
  const second: Endpoint = { reached: 400, shown: {} };
  const passes = openPasses({ first, second });
  expect(await passes.endsAsFinal("invented", 2 ** 40)).toBe(false);
  Object.assign(first, { reached: 10_000, shown: { hour: 9_500 } });
  Object.assign(second, { reached: 10_000, shown: { hour: 9_500 } });
  expect(await waitedFor(() => passes.endsAsFinal("hour", 9_500))).toBe(0);
  first.shown = { fresh: 20_000 };
  expect(await waitedFor(() => passes.endsAsFinal("fresh", 20_000))).toBe(30_000);
});
