import { expect, test } from "vitest";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { readFinalState } from "../../../../transfers/solana/final-states.ts";

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
