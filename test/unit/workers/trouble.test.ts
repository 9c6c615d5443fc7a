import { RpcRequestError } from "viem";
import { describe, expect, test } from "vitest";
import { ChainFault, isTransientChainError } from "../../../chains/faults.ts";
import { createJudge } from "../../../workers/trouble.ts";

const isTransient = createJudge(isTransientChainError);
const withCode = (code: string) => Object.assign(new Error("said so"), { code });

describe("trouble passes when it is", () => {
  test.each([
    ["a connection that is refused", withCode("ECONNREFUSED")],
    ["Postgres shutting down", withCode("57P01")],
    ["Postgres out of connections", withCode("53300")],
    ["a connection lost", withCode("08006")],
    ["a deadlock", withCode("40P01")],
    ["a statement that took too long", withCode("57014")],
    ["pg's own words", new Error("Connection terminated unexpectedly")],
    ["the pool's own words", new Error("timeout exceeded when trying to connect")],
    ["Redis loading its data", new Error("LOADING Redis is loading the dataset in memory")],
    ["an RPC that nobody reached", new ChainFault("rpc_unreachable")],
    ["an RPC that lags", new ChainFault("rpc_behind")],
    ["an answer of a node", new RpcRequestError({ body: {}, error: { code: 1, message: "busy" }, url: "http://n" })],
    ["a cause that passes", new Error("while judging", { cause: withCode("ECONNRESET") })],
  ])("%s", (_what, error) => {
    expect(isTransient(error)).toBe(true);
  });
});

describe("a person is wanted for", () => {
  test.each<[string, unknown]>([
    ["a bug", new TypeError("x is not a function")],
    ["a row that a key refused", withCode("23505")],
    ["a move that is not allowed", withCode("23503")],
    ["a column that is not there", withCode("42703")],
    ["a wrong chain", new ChainFault("wrong_chain")],
    ["a wrong contract", new ChainFault("wrong_contract")],
    ["what is no error", "Connection terminated"],
    ["nothing", undefined],
  ])("%s", (_what, error) => {
    expect(isTransient(error)).toBe(false);
  });
});
