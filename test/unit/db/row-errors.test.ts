import { HttpRequestError } from "viem";
import { expect, test } from "vitest";
import { ChainError } from "../../../chains/errors.ts";
import { isRowError } from "../../../db/row-errors.ts";

const coded = (code: unknown, message = "failed") => Object.assign(new Error(message), { code });

test.each<[string, unknown]>([
  ["a check constraint", coded("23514")],
  ["a unique key", coded("23505")],
  ["a number that is too large", coded("22003")],
  ["a text that Postgres refuses", coded("22021")],
  ["a value too long for its index", coded("54000")],
  ["a row that is written twice by one statement", coded("21000")],
  ["an exception of a trigger", coded("P0001")],
  ["what our code throws", new Error("a confirmed payout has no settlement in state paying")],
  ["a bug", new TypeError("undefined is not a function")],
])("%s is the row's own error", (_what, error) => {
  expect(isRowError(error)).toBe(true);
});

test.each<[string, unknown]>([
  ["a deadlock", coded("40P01")],
  ["a serialization failure", coded("40001")],
  ["a statement timeout", coded("57014")],
  ["a shutdown", coded("57P01")],
  ["too many connections", coded("53300")],
  ["an unavailable lock", coded("55P03")],
  ["a lost connection", coded("08006")],
  ["a refused connection", coded("ECONNREFUSED")],
  ["a missing table, which affects every row", coded("42P01")],
  ["a connection that ends without a code", new Error("Connection terminated unexpectedly")],
  ["a pool without a free connection", new Error("timeout exceeded when trying to connect")],
  ["a client whose connection has failed", new Error("Client has encountered a connection error and is not queryable")],
  ["a lagging endpoint", new ChainError("rpc_behind")],
  ["an unreachable endpoint", new HttpRequestError({ url: "http://127.0.0.1:1" })],
  ["an error with a transient cause", new Error("no booking", { cause: coded("57P01") })],
  ["a thrown value that is not an error", "failed"],
])("%s is not an error of one row", (_what, error) => {
  expect(isRowError(error)).toBe(false);
});
