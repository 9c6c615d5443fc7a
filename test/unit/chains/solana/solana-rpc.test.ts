import { afterEach, expect, test, vi } from "vitest";
import { readRent } from "../../../../chains/solana/nonce-accounts.ts";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { listSignatures } from "../../../../chains/solana/transaction-history.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { answerEach, openCluster } from "./test-endpoints.ts";

afterEach(() => void vi.useRealTimers());

const signature = "1".repeat(64);

test("an endpoint that has not reached the slot of a request is passed over, in favour of one that has", async () => {
  const error = { code: -32_016, message: "Minimum context slot has not been reached" };
  const listed = [{ signature, slot: 7, err: null, memo: null }];
  const { chain } = await openCluster(
    { answer: answerEach(() => ({ error })) },
    { answer: answerEach(() => ({ result: listed })) },
  );
  expect(await listSignatures(chain, { account: "treasury", atSlot: 7 })).toEqual([
    { signature, slot: 7, failed: false, memo: "" },
  ]);
});

const signatures = [{ signature, slot: 7, err: null, memo: null }];
const list = (chain: SolanaChain) => listSignatures(chain, { account: "treasury" });

test.each([
  ["an internal error", { code: -32_603, message: "Internal error" }],
  ["that its plan lacks the method", { code: -32_601, message: "Method not found" }],
  [
    "that its history is not available",
    { code: -32_011, message: "Transaction history is not available from this node" },
  ],
  ["that it rejects the parameters", { code: -32_602, message: "Invalid param: too old" }],
])("an endpoint that returns %s is passed over each time, and is asked for other things", async (_what, error) => {
  const { chain, requests } = await openCluster(
    { answer: answerEach(({ method }) => (method === "getSignaturesForAddress" ? { error } : { result: 890_880 })) },
    { answer: answerEach(() => ({ result: signatures })) },
  );
  for (let reads = 1; reads <= 2; reads += 1) {
    expect(await list(chain)).toMatchObject([{ signature }]);
    expect(requests.map(({ length }) => length)).toEqual([reads, reads]);
  }
  expect(await readRent(chain)).toBe(890_880n);
});

test("an endpoint that says with status 200 that it limits the rate of calls is not asked for as long as it says", async () => {
  const error = { code: -32_429, message: "daily request count exceeded, retry in 30s" };
  const { chain, requests } = await openCluster(
    { answer: answerEach(() => ({ error })) },
    { answer: answerEach(() => ({ result: signatures })) },
  );
  for (let reads = 0; reads < 3; reads += 1) await list(chain);
  expect(requests.map(({ length }) => length)).toEqual([1, 3]);
});

test("an endpoint whose answer is not JSON is passed over", async () => {
  const { chain } = await openCluster(
    { answer: () => ({ body: undefined }) },
    { answer: answerEach(() => ({ result: signatures })) },
  );
  expect(await list(chain)).toMatchObject([{ signature }]);
});

test("the error is reported when every endpoint returns one", async () => {
  const error = { code: -32_603, message: "Internal error" };
  const { chain, requests } = await openCluster(
    { answer: answerEach(() => ({ error })) },
    { answer: answerEach(() => ({ error })) },
  );
  await expect(list(chain)).rejects.toMatchObject({ code: "rpc_answer" });
  expect(requests.map(({ length }) => length)).toEqual([1, 1]);
});

test("an endpoint that hangs delays the answers of the others once, and later only briefly", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const { chain, requests } = await openCluster(
    { answer: answerEach(() => ({ result: 7 })) },
    { answer: () => undefined },
  );
  const ask = async () => {
    const began = Date.now();
    const answers = await chain.rpc.queryAvailable("getSlot", (_connection, call) => call("getSlot", []));
    expect(answers).toEqual([{ by: "endpoint-0", answer: 7 }]);
    return Date.now() - began;
  };
  expect(await ask()).toBeGreaterThan(4_000);
  // The suspension ends.
  vi.advanceTimersByTime(5_000);
  expect(await ask()).toBeLessThan(4_000);
  expect(requests.map(({ length }) => length)).toEqual([2, 2]);
});

const readSlot = (chain: SolanaChain, isAsked = (_by: string) => true) =>
  chain.rpc.queryNext("getSlot", (_connection, call) => call("getSlot", []), isAsked);

test("a request of little importance goes to one endpoint after the other, until one answers", async () => {
  const { chain, requests } = await openCluster(
    { answer: () => ({ status: 429 }) },
    { answer: answerEach(() => ({ error: { code: -32_603, message: "Internal error" } })) },
    { answer: answerEach(() => ({ result: 7 })) },
    { answer: answerEach(() => ({ result: 8 })) },
  );
  expect(await readSlot(chain)).toEqual({ by: "endpoint-2", answer: 7 });
  expect(await readSlot(chain, (by) => by === "endpoint-1")).toBeUndefined();
  expect(requests.map(({ length }) => length)).toEqual([1, 2, 1, 0]);
});

test("an endpoint that refuses a request of little importance is asked for money at once", async () => {
  let refuses = true;
  const { chain, requests } = await openCluster({
    answer: (body) => (refuses ? { status: 429 } : answerEach(() => ({ result: signatures }))(body)),
  });
  expect(await readSlot(chain)).toBeUndefined();
  refuses = false;
  expect(await list(chain)).toMatchObject([{ signature }]);
  expect(requests).toMatchObject([[{ method: "getSlot" }, { method: "getSignaturesForAddress" }]]);
});

test("a request of little importance leaves half of an endpoint's budget, and waits for none", async () => {
  const { chain, requests } = await openCluster({ answer: answerEach(() => ({ result: 7 })), callsPerMinute: 60 });
  const began = Date.now();
  for (let calls = 0; calls < 4; calls += 1) await readSlot(chain);
  await expect(Promise.all(Array.from({ length: 6 }, () => readSlot(chain)))).rejects.toMatchObject({
    code: "budget_spent",
  });
  expect(requests[0]?.length).toBeLessThan(10);
  expect(Date.now() - began).toBeLessThan(5_000);
});

test("an endpoint that follows the head, and whose final slot stands still, is asked last", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const endpoint = (final: number) =>
    answerEach(({ method, params }) => {
      if (method !== "getSlot") return { result: signatures };
      return { result: (params[0] as { commitment: string }).commitment === "finalized" ? final : 1_000 };
    });
  const { chain, requests } = await openCluster({ answer: endpoint(100) }, { answer: endpoint(968) });
  const isAsked = async () => {
    await list(chain);
    return (requests[1] ?? []).some((body) => !Array.isArray(body) && body.method !== "getSlot");
  };
  expect(await isAsked()).toBe(false);
  vi.advanceTimersByTime(15_000);
  await isAsked();
  vi.useRealTimers();
  await waitFor(isAsked, { within: 10_000 });
});
