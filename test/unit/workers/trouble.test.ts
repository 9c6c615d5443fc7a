import { expect, test } from "vitest";
import { ChainFault, isTransientChainError } from "../../../chains/faults.ts";
import { createJudge } from "../../../workers/trouble.ts";

const isTransient = createJudge(isTransientChainError);
const withCode = (code: string) => Object.assign(new Error("x"), { code });

test.each([
  ["an RPC that is away", new ChainFault("rpc_unreachable"), true],
  ["a contract that is another one", new ChainFault("wrong_contract"), false],
  ["Postgres shutting down", withCode("57P01"), true],
  ["two transactions that met", withCode("40P01"), true],
  ["a unique key", withCode("23505"), false],
  ["a connection refused", withCode("ECONNREFUSED"), true],
  ["a connection lost without a code", new Error("Connection terminated unexpectedly"), true],
  ["the same, wrapped", new Error("outer", { cause: withCode("ECONNRESET") }), true],
  ["a bug", new TypeError("x is undefined"), false],
  ["no error at all", "ECONNREFUSED", false],
])("%s", (_what, thrown, passes) => {
  expect(isTransient(thrown)).toBe(passes);
});
