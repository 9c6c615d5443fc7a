import { RpcRequestError } from "viem";
import { expect, test } from "vitest";
import { isStateMissing } from "../../../../chains/evm/state-errors.ts";

const toError = (message: string, data?: unknown) =>
  new RpcRequestError({ body: {}, error: { code: -32_000, message, data }, url: "https://rpc.example" });
const ROOT = "c6ebfa185e24077a555f06caaf4b78d9e0ae9dcb7a693ec753e856f49f55c85c";

test.each([
  ["Geth (go-ethereum 20874)", `missing trie node ${ROOT} (path )`],
  ["Bor (0xPolygon/bor 1303)", `missing trie node ${ROOT} (path ) state 0x${ROOT} is not available, not found`],
  ["Geth, states by path", `historical state ${ROOT} is not available`],
  ["Geth, re-executed (blockscout 2219)", "required historical state unavailable (reexec=128)"],
  ["Besu", "World state unavailable"],
  ["Nethermind", "No state available for block 0x5d41"],
  ["Reth", "state at block #5000000 is pruned"],
  ["Erigon", "old data not available due to pruning"],
  ["a provider's plan", "Archive, Debug and Trace requests are not available on your current plan"],
])("the answer of %s says that the endpoint lacks a state", (_node, message) => {
  expect(isStateMissing(toError(message))).toBe(true);
});

test.each([
  ["a block that is not there yet", "header not found", undefined],
  ["a rate limit", "too many requests", undefined],
  ["a contract's revert by its text", "execution reverted: state is not available", undefined],
  ["a contract's revert by its data", "missing trie node", "0x08c379a0"],
])("%s is not an endpoint without a state", (_what, message, data) => {
  expect(isStateMissing(toError(message, data))).toBe(false);
});
