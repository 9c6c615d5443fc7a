import { expect, test } from "vitest";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { readTrackedTransactions } from "../../../../transfers/solana/read-tracked-transactions.ts";

type Shown = { slot: number; depth?: "confirmed" | "finalized"; failed?: boolean } | undefined;

/** Reads the status of a transaction that was recorded in slot 100, where endpoints show this. Slot 200 is final. */
async function readStatus(...shown: Shown[]) {
  const call = (one: Shown) => async () => ({
    context: { slot: 300 },
    value: [
      one ? { slot: one.slot, err: one.failed ? "failed" : null, confirmationStatus: one.depth ?? "finalized" } : null,
    ],
  });
  type Question = (connection: unknown, call: unknown) => Promise<unknown>;
  const rpc = {
    ask: async (_method: string, question: Question) => question({}, call(shown[0])),
    queryAvailable: async (_method: string, question: Question) =>
      Promise.all(shown.map(async (one, at) => ({ by: `endpoint-${at}`, answer: await question({}, call(one)) }))),
  };
  const chain = { chain: "solana:test", rpc } as unknown as SolanaChain;
  const row = { hash: "hash", state: "included", slot: 100, reverted: false, created_at: new Date(0) } as never;
  const [one] = await readTrackedTransactions({ now: () => new Date(0) } as never, chain, [row], { final: 200 });
  return one?.status && `${one.status.slot} ${one.status.depth}${one.status.error ? " failed" : ""}`;
}

const behind: Shown = { slot: 100, depth: "confirmed" };

test("a transaction that the first endpoint does not show as final yet is final where another one shows the same", async () => {
  expect(await readStatus(behind, { slot: 100 })).toBe("100 finalized");
});

test("an endpoint that alone shows a transaction in another slot, or as failed, does not replace the first one's status", async () => {
  expect(await readStatus(behind, { slot: 101 })).toBe("100 confirmed");
  expect(await readStatus(behind, { slot: 100, failed: true })).toBe("100 confirmed");
  expect(await readStatus(behind, { slot: 101 }, { slot: 100 })).toBe("100 finalized");
  expect(await readStatus(undefined, { slot: 101 }, { slot: 100 })).toBe("100 finalized");
});

test("two endpoints that show a transaction in another slot replace the first one's status", async () => {
  expect(await readStatus(behind, { slot: 99 }, { slot: 101 }, { slot: 101 })).toBe("101 finalized");
});

test("a transaction that the first endpoint has lost is read from any other one", async () => {
  expect(await readStatus(undefined, { slot: 101 })).toBe("101 finalized");
  expect(await readStatus(undefined, undefined, behind)).toBe("100 confirmed");
});
