import { expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { compareReadings } from "../../../../transfers/solana/compare-readings.ts";

const meta = { preTokenBalances: [], postTokenBalances: [], innerInstructions: [] };
const message = { staticAccountKeys: [], addressTableLookups: [], compiledInstructions: [] };
/** A transaction without movements. */
const empty = { slot: 7, blockTime: 1, meta, transaction: { message } };
const token = { treasuryAccount: "account", token: "mint" };
/** The first endpoint shows no movement. */
const nothing = { by: "first", digest: null };

/** A change of the treasury's balance that no instruction explains. */
const other = {
  ...empty,
  meta: { ...meta, postTokenBalances: [{ accountIndex: 0, owner: "treasury", uiTokenAmount: { amount: "5" } }] },
  transaction: { message: { ...message, staticAccountKeys: [{ toBase58: () => "account" }] } },
};

type Answer = "nothing" | "other" | "unknown" | "later" | "down" | "spent";
const shown = { nothing: empty, other, unknown: null, later: null, down: null, spent: null };

/** Opens a cluster whose other endpoints answer what `others` holds at the time, and counts the calls of each. */
function open(others: Record<string, Answer>, historyReadsPerSecond = 10_000) {
  let now = 0;
  const calls: Record<string, number> = {};
  const counter = { inc: () => undefined };
  const log = { error: () => undefined };
  const deps = { metrics: { endpointDisagreements: counter }, log, now: () => new Date(now) } as never;
  const queryNext = async (
    _method: string,
    question: (...args: unknown[]) => Promise<unknown>,
    isAsked: (by: string) => boolean,
  ) => {
    for (const by of Object.keys(others).filter(isAsked)) {
      calls[by] = (calls[by] ?? 0) + 1;
      if (others[by] === "spent") throw new ChainError("budget_spent", { detail: by });
      const connection = { getTransaction: async () => shown[others[by] ?? "down"] };
      // The history of one that is `later` begins after the transactions.
      const call = async () => (others[by] === "later" ? 8 : 7);
      if (others[by] !== "down") return { by, answer: await question(connection, call, by) };
    }
    return undefined;
  };
  const network = { rpc: ["first", ...Object.keys(others)], historyReadsPerSecond };
  const chain = { chain: "solana:test", rpc: { queryNext }, network, lanes: [], treasury: "treasury" };
  const account = { chain: chain as unknown as SolanaChain, token: token as never };
  return {
    calls,
    advance: (ms: number) => (now += ms),
    compare: (count: number, attempts = 0, isRelisted = true) => {
      const waiting = Array.from({ length: count }, (_, at) => {
        return { signature: `${at}`, slot: 7, attempts_made: attempts, reading: nothing } as never;
      });
      return compareReadings(deps, account, { waiting, isRelisted: () => isRelisted });
    },
  };
}

test("a transaction that two endpoints show alike costs no call of a third one", async () => {
  const { calls, compare } = open({ second: "nothing", third: "nothing" });
  expect((await compare(3)).reads).toHaveLength(3);
  expect(calls).toEqual({ second: 3 });
});

test("a transaction that the second endpoint does not have is read from the third one", async () => {
  const { calls, compare } = open({ second: "unknown", third: "nothing" });
  expect((await compare(1)).reads).toHaveLength(1);
  expect(calls).toEqual({ second: 1, third: 1 });
});

test("transactions without a movement are compared at a twentieth of the rate at which they are read", async () => {
  const { compare } = open({ second: "nothing" }, 100);
  const began = performance.now();
  expect((await compare(5)).reads).toHaveLength(5);
  expect(performance.now() - began).toBeGreaterThanOrEqual(900);
});

test("the first transaction that no other endpoint answers for ends the comparison", async () => {
  const { calls, compare } = open({ second: "down" });
  const { reads, failures } = await compare(20);
  expect([reads.length, failures.length]).toEqual([0, 1]);
  expect(calls).toEqual({ second: 1 });
});

test("one endpoint is believed once no other one has answered for half a minute", async () => {
  const others: Record<string, Answer> = { second: "spent" };
  const { advance, compare } = open(others);
  expect((await compare(2, 8)).reads).toEqual([]);
  others["second"] = "down";
  expect((await compare(2, 8)).reads).toEqual([]);
  advance(29_000);
  expect((await compare(2, 8)).reads).toEqual([]);
  advance(1_000);
  expect((await compare(2, 3)).reads).toEqual([]);
  expect((await compare(2, 4)).reads).toHaveLength(2);
  others["second"] = "nothing";
  expect((await compare(2, 4)).reads).toHaveLength(2);
  others["second"] = "down";
  expect((await compare(2, 8)).reads, "it is waited for again").toEqual([]);
});

test.each<Answer>(["down", "unknown"])(
  "one endpoint is not believed about a transaction that is not listed again, while the other one is %s",
  async (answer) => {
    const { advance, compare } = open({ second: answer });
    for (let count = 0; count < 3; count += 1) {
      expect((await compare(2, 8, false)).reads).toEqual([]);
      advance(60_000);
    }
    expect((await compare(2, 8, true)).reads).toHaveLength(2);
  },
);

test.each<[Record<string, Answer>, number]>([
  [{ second: "later" }, 2],
  [{ second: "later", third: "later" }, 2],
  [{ second: "later", third: "unknown" }, 0],
  [{ second: "later", third: "down" }, 0],
])(
  "one endpoint is believed when no other one's history goes back to a transaction: of %o, %s are",
  async (others, count) => {
    const { advance, compare } = open(others);
    expect((await compare(2, 3, false)).reads).toEqual([]);
    advance(60_000);
    const { reads } = await compare(2, 4, false);
    expect(reads).toHaveLength(count);
    expect(reads.filter(({ isAlone }) => isAlone)).toEqual([]);
  },
);

test("one endpoint is not believed against another one that shows something else", async () => {
  const { compare } = open({ second: "other" });
  const { reads, failures } = await compare(1, 8);
  expect([reads, failures]).toMatchObject([[], [{ isContradicted: true }]]);
});

test("a budget that is spent makes no endpoint believed that alone shows a transaction", async () => {
  const { advance, calls, compare } = open({ second: "spent" });
  for (let count = 1; count <= 3; count += 1) {
    expect(await compare(20, 8)).toEqual({ reads: [], failures: [] });
    expect(calls).toEqual({ second: count });
    advance(60_000);
  }
});
