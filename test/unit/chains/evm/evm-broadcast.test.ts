import { RpcRequestError } from "viem";
import { describe, expect, test } from "vitest";
import { ChainError, chainErrors, isTransientChainError } from "../../../../chains/errors.ts";
import { type BroadcastResult, type BroadcastTo, broadcastBytes } from "../../../../chains/evm/evm-broadcast.ts";
import type { Rpc } from "../../../../chains/evm/evm-rpc.ts";

/** Broadcasts to endpoints of which each answers with this error, as viem throws it, accepts, or does not answer. */
function broadcastTo(...answers: Answer[]): ReturnType<typeof broadcast> {
  return broadcast(answers);
}

type Answer = string | "accepts" | ChainError;

async function broadcast(
  answers: readonly Answer[],
  to?: BroadcastTo,
): Promise<{ result: BroadcastResult; asked: number[] }> {
  const asked: number[] = [];
  const endpoints = answers.map((answer, index) => ({
    name: `endpoint-${index}`,
    rpc: (async () => {
      asked.push(index);
      if (answer instanceof ChainError) throw answer;
      if (answer === "accepts") return "0xhash";
      const error = { code: -32000, message: answer };
      throw new RpcRequestError({ body: { params: ["0xsecret"] }, error, url: "http://n" });
    }) as never as Rpc,
  }));
  const sendToOneEndpoint = async <T>(send: (rpc: Rpc) => Promise<T>) => {
    const [first] = endpoints;
    if (!first) throw new Error("there is no endpoint");
    return { by: first.name, value: await send(first.rpc) };
  };
  return { result: await broadcastBytes({ sendToOneEndpoint, endpoints }, "0x02", to), asked };
}

// Messages of Geth, Nethermind, Erigon, Besu, Reth, Anvil and rollups.
const messages = {
  accepted: ["already known", "known transaction: 0xabc", "transaction already imported", "Known transaction"],
  nonce_too_low: [
    "nonce too low",
    "nonce too low: next nonce 6, tx nonce 5",
    "Nonce too low, current nonce 4",
    "nonce is too low",
    "Transaction nonce already used",
  ],
  underpriced: [
    "replacement transaction underpriced",
    "transaction underpriced: gas tip cap 1, minimum needed 2",
    "max fee per gas less than block base fee: address 0x, maxFeePerGas: 1, baseFee: 7",
    "max fee per gas less than block base fee",
    "Gas price below configured minimum gas price",
    "txpool is full",
    "Transaction pool is full",
  ],
  insufficient_funds: [
    "insufficient funds for gas * price + value",
    "Insufficient funds for gas * price + value: balance 0, tx cost 5",
    "insufficient funds for gas * price + value: address 0x have 0 want 1",
  ],
  refused: ["intrinsic gas too low", "exceeds block gas limit", "invalid sender", "nonce too high"],
} as const;

describe.each(Object.entries(messages))("a broadcast is %s", (outcome, errors) => {
  test.each(errors)("if a node returns the error %j", async (message) => {
    expect((await broadcastTo(message)).result).toMatchObject({ outcome });
  });
});

test("a broadcast that a node accepts is accepted, and made to no other one", async () => {
  expect(await broadcastTo("accepts", "accepts")).toEqual({ result: { outcome: "accepted" }, asked: [0] });
});

const silent = new ChainError("rpc_unreachable");

test("a broadcast without an answer is unknown, not failed", async () => {
  expect(await broadcastTo(silent)).toMatchObject({ result: { outcome: "unknown" }, asked: [0] });
});

test("the reason never contains the broadcast bytes", async () => {
  expect(JSON.stringify(await broadcastTo("exceeds block gas limit"))).not.toContain("secret");
});

const low = "transaction underpriced";
test.each([
  ["underpriced", "another endpoint accepts", [low, "accepts"], "accepted", [0, 1]],
  ["underpriced", "another endpoint knows the bytes", [low, "already known"], "accepted", [0, 1]],
  ["underpriced", "another endpoint has the nonce in a block", [low, "nonce too low"], "nonce_too_low", [0, 1]],
  ["refused", "only the last endpoint accepts", ["nonce too high", low, "accepts"], "accepted", [0, 1, 2]],
  ["insufficient funds", "another endpoint accepts", ["insufficient funds", "accepts"], "accepted", [0, 1]],
  ["underpriced", "another endpoint does not answer", [low, silent], "underpriced", [0, 1]],
  ["refused", "another endpoint finds it underpriced", ["nonce too high", low], "underpriced", [0, 1]],
  ["refused", "another endpoint refuses it", ["nonce too high", "insufficient funds"], "refused", [0, 1]],
  ["nonce too low", "there is another endpoint", ["nonce too low", "accepts"], "nonce_too_low", [0]],
] as const)("a broadcast is %s at the first endpoint, and %s", async (_first, _then, answers, outcome, asked) => {
  expect(await broadcastTo(...answers)).toMatchObject({ result: { outcome }, asked });
});

test.each([
  ["each accepts", ["accepts", "accepts"], "accepted", [0, 1]],
  ["the second one refuses", ["accepts", low, "accepts"], "accepted", [0, 1, 2]],
  ["the second one does not answer", ["accepts", silent, "accepts"], "accepted", [0, 1, 2]],
  ["the second one has the nonce in a block", ["accepts", "nonce too low", "accepts"], "accepted", [0, 1, 2]],
  ["only the last one accepts", [low, "nonce too high", "accepts"], "accepted", [0, 1, 2]],
  ["the first one has the nonce in a block", ["nonce too low", "accepts"], "nonce_too_low", [0]],
] as const)("a broadcast to all endpoints, when %s, is made to them", async (_when, answers, outcome, asked) => {
  expect(await broadcast(answers, "all")).toMatchObject({ result: { outcome }, asked });
});

test("a broadcast to one endpoint is made to no other one when that refuses it", async () => {
  expect(await broadcast([low, "accepts"], "one")).toMatchObject({ result: { outcome: "underpriced" }, asked: [0] });
});

test("the table of chain errors decides which errors are transient", () => {
  for (const [code, { transient }] of Object.entries(chainErrors))
    expect(isTransientChainError(new ChainError(code as keyof typeof chainErrors)), code).toBe(transient);
  const answered = new RpcRequestError({ body: {}, error: { code: -32000, message: "busy" }, url: "http://n" });
  expect(isTransientChainError(answered)).toBe(true);
  expect(isTransientChainError(new Error("a bug"))).toBe(false);
  expect(isTransientChainError(undefined)).toBe(false);
});

test.each([
  ["accepted", "AlreadyKnown"],
  ["nonce_too_low", "OldNonce"],
  ["underpriced", "FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7"],
  ["underpriced", "ReplacementNotAllowed"],
  ["insufficient_funds", "InsufficientFunds, Account balance: 0, cumulative cost: 5"],
])("a broadcast is %s if Nethermind, which writes errors without spaces, returns %j", async (outcome, message) => {
  expect((await broadcastTo(message)).result).toMatchObject({ outcome });
});
