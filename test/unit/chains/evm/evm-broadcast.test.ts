import { RpcRequestError } from "viem";
import { describe, expect, test } from "vitest";
import { ChainError, chainErrors, isTransientChainError } from "../../../../chains/errors.ts";
import { broadcastBytes } from "../../../../chains/evm/evm-broadcast.ts";

/** An endpoint that answers every broadcast with this error, as viem throws it. */
const failWith = (message: string) => () =>
  Promise.reject(
    new RpcRequestError({ body: { params: ["0xsecret"] }, error: { code: -32000, message }, url: "http://n" }),
  );

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
  ],
  insufficient_funds: [
    "insufficient funds for gas * price + value",
    "Insufficient funds for gas * price + value: balance 0, tx cost 5",
    "insufficient funds for gas * price + value: address 0x have 0 want 1",
  ],
  refused: ["intrinsic gas too low", "txpool is full", "exceeds block gas limit", "invalid sender", "nonce too high"],
} as const;

describe.each(Object.entries(messages))("a broadcast is %s", (outcome, errors) => {
  test.each(errors)("if a node returns the error %j", async (message) => {
    expect(await broadcastBytes(failWith(message) as never, "0x02")).toMatchObject({ outcome });
  });
});

test("a broadcast that a node accepts is accepted", async () => {
  expect(await broadcastBytes((async () => "0xhash") as never, "0x02")).toEqual({ outcome: "accepted" });
});

test("a broadcast without an answer is unknown, not failed", async () => {
  const silent = () => Promise.reject(new ChainError("rpc_unreachable"));
  expect(await broadcastBytes(silent as never, "0x02")).toMatchObject({ outcome: "unknown" });
});

test("the reason never contains the broadcast bytes", async () => {
  const result = await broadcastBytes(failWith("txpool is full") as never, "0x02");
  expect(JSON.stringify(result)).not.toContain("secret");
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
  expect(await broadcastBytes(failWith(message) as never, "0x02")).toMatchObject({ outcome });
});
