import { expect, test } from "vitest";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { broadcastBytes, copyBroadcasts } from "../../../../chains/solana/solana-broadcast.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { answerEach, type Frame, openCluster, type Response } from "./test-endpoints.ts";

const accept = answerEach(() => ({ result: "signature" }));
const tooMany: Response = { status: 429, headers: { "retry-after": "5" } };

/** Broadcasts transactions, and returns the number that an endpoint accepted. */
async function countAccepted(chain: SolanaChain, transactions: number) {
  const results = await broadcastBytes(
    chain,
    Array.from({ length: transactions }, (_, index) => Uint8Array.of(index)),
  );
  expect(results).toHaveLength(transactions);
  return results.filter(({ outcome }) => outcome === "accepted").length;
}

/** The number of calls of each request. */
const sizes = (bodies: readonly (Frame | Frame[])[]) => bodies.map((body) => (Array.isArray(body) ? body.length : 1));

test("transactions are sent in one request, and each counts as a call, as providers bill them", async () => {
  const { chain, requests, metrics } = await openCluster({ answer: accept });
  expect(await countAccepted(chain, 3)).toBe(3);
  expect(requests.map(sizes)).toEqual([[3]]);
  expect(await metrics()).toMatch(/pay_rpc_calls_total\{[^}]*method="sendTransaction"[^}]*\} 3\n/);
});

test("an endpoint that refuses batches gets single calls from then on, and those that it limits go to the next endpoint", async () => {
  let singles = 0;
  const { chain, requests, metrics } = await openCluster(
    {
      answer: (body) => {
        if (Array.isArray(body)) return { status: 413 };
        singles += 1;
        return singles === 1 ? accept(body) : tooMany;
      },
    },
    { answer: accept },
  );
  expect(await countAccepted(chain, 16)).toBe(16);
  expect(requests[1]).toHaveLength(15);
  expect(await metrics()).toMatch(
    /pay_rpc_calls_total\{[^}]*endpoint="endpoint-0"[^}]*outcome="unreachable"[^}]*\} 3\n/,
  );
  // The first endpoint asked us to wait.
  const before = requests[0]?.length;
  expect(await countAccepted(chain, 2)).toBe(2);
  expect(requests[0]).toHaveLength(before ?? 0);
});

test("calls that a batch leaves without a result are made again by themselves", async () => {
  const { chain, requests } = await openCluster(
    {
      answer: (body) =>
        Array.isArray(body)
          ? answerEach(({ id }) => (id === 0 ? { result: "a" } : { error: { code: -32_007, message: "limit" } }))(body)
          : tooMany,
    },
    { answer: accept },
  );
  expect(await countAccepted(chain, 16)).toBe(16);
  expect(sizes(requests[1] ?? [])).toEqual(Array(15).fill(1));
});

test("one call with an error does not hide those that an endpoint has not answered, and all go to the next endpoint", async () => {
  let singles = 0;
  const { chain, requests } = await openCluster(
    {
      answer: (body) => {
        if (Array.isArray(body)) return { status: 413 };
        singles += 1;
        return singles === 1
          ? answerEach(() => ({ error: { code: -32_005, message: "behind" } }))(body)
          : { status: 503 };
      },
    },
    { answer: accept },
  );
  expect(await countAccepted(chain, 16)).toBe(16);
  expect(requests[1]).toHaveLength(16);
});

test("a transaction that an endpoint calls bad is not sent again", async () => {
  const bad = answerEach(({ id }) => (id === 1 ? { error: { code: -32_003, message: "signature" } } : { result: "a" }));
  const { chain, requests } = await openCluster({ answer: bad });
  expect(await countAccepted(chain, 3)).toBe(2);
  expect(requests.map(sizes)).toEqual([[3]]);
});

/** Copies transactions that an endpoint has accepted. */
const copy = (chain: SolanaChain, transactions: number, by: string | undefined) =>
  copyBroadcasts(
    chain,
    Array.from({ length: transactions }, (_, index) => ({ bytes: Uint8Array.of(index), by })),
  );

test("a transaction that one endpoint has accepted is copied to every other one, in batches where it takes them", async () => {
  const { chain, requests } = await openCluster(
    { answer: accept },
    { answer: (body) => (Array.isArray(body) ? { status: 413 } : accept(body)) },
    { answer: answerEach(() => ({ error: { code: -32_005, message: "behind" } })) },
    { answer: accept },
  );
  await copy(chain, 18, "endpoint-0");
  expect(requests.map(sizes)).toEqual([[], [16, ...Array(18).fill(1)], [16, ...Array(18).fill(1)], [16, 2]]);
});

test("a transaction that an endpoint calls bad is copied to every endpoint", async () => {
  const { chain, requests } = await openCluster({ answer: accept }, { answer: accept });
  await copy(chain, 1, undefined);
  expect(requests.map(sizes)).toEqual([[1], [1]]);
});

test("copies wait for no budget and leave half of it", async () => {
  const { chain, requests } = await openCluster({ answer: accept }, { answer: accept, callsPerMinute: 60 });
  const began = performance.now();
  for (let count = 0; count < 3; count += 1) await copy(chain, 60, "endpoint-0");
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(requests[1]?.length).toBeGreaterThan(0);
  expect(requests[1]?.length).toBeLessThan(10);
});

test("the result of a transaction that every endpoint refuses has the reason", async () => {
  const { chain } = await openCluster(...[1, 2].map(() => ({ answer: () => ({ status: 503 }) })));
  const results = await broadcastBytes(chain, [Uint8Array.of(1)]);
  expect(results).toEqual([{ outcome: "unknown", reason: expect.stringContaining("sendTransaction") }]);
});

test("an outage sends the batch to the next endpoint, which keeps getting batches", async () => {
  const { chain, requests } = await openCluster({ answer: () => ({ status: 502 }) }, { answer: accept });
  expect(await countAccepted(chain, 16)).toBe(16);
  expect(await countAccepted(chain, 16)).toBe(16);
  expect(requests.map(sizes)).toEqual([[16], [16, 16]]);
});

test(
  "a batch goes to an endpoint whose budget has room for all of it, and is sent one by one where none has",
  inRealTime,
  async () => {
    const { chain, requests } = await openCluster(
      { answer: accept, callsPerMinute: 240 },
      { answer: accept, callsPerMinute: 6_000 },
    );
    expect(await countAccepted(chain, 1)).toBe(1);
    const started = performance.now();
    const accepted = await Promise.all([16, 16, 16, 16].map((size) => countAccepted(chain, size)));
    expect(accepted).toEqual([16, 16, 16, 16]);
    // The first endpoint's burst of 40 calls has room for two batches, after the check of its chain and one call.
    expect(requests.map(sizes)).toEqual([
      [1, 16, 16],
      [16, 16],
    ]);
    expect(performance.now() - started).toBeLessThan(2_000);

    const small = await openCluster({ answer: accept, callsPerMinute: 60 });
    expect(await countAccepted(small.chain, 8)).toBe(8);
    expect(await countAccepted(small.chain, 2)).toBe(2);
    expect(small.requests.map(sizes)).toEqual([[8, 1, 1]]);
  },
);
