import { expect, test } from "vitest";
import { runEach } from "../../../runtime/run-each.ts";
import { createTransientCheck } from "../../../runtime/transient-errors.ts";

const isTransient = createTransientCheck(() => false);

async function run(errors: Record<string, Error>) {
  const ran: string[] = [];
  const step = async (item: string) => {
    ran.push(item);
    const error = errors[item];
    if (error) throw error;
  };
  const thrown = await runEach(["a", "b", "c", "d"], step, { isTransient }).catch((error: unknown) => error);
  return { ran, thrown };
}
const withCode = (code: string) => Object.assign(new Error("an error with a code"), { code });
const [bug, other, transient] = [new Error("a bug"), new Error("another bug"), withCode("57P01")];

test.each([
  ["runs each item, one after the other", {}, ["a", "b", "c", "d"], undefined],
  [
    "runs the items after one that fails, and then throws the first error",
    { b: bug, c: other },
    ["a", "b", "c", "d"],
    bug,
  ],
  ["ends at a transient error", { b: transient }, ["a", "b"], transient],
  ["reports a bug before the transient error that ended the run", { a: bug, c: transient }, ["a", "b", "c"], bug],
])("runEach %s", async (_title, errors, ran, thrown) => {
  expect(await run(errors)).toEqual({ ran, thrown });
});

test.each([
  ["a statement that waited too long, perhaps for one row", withCode("57014")],
  ["a lock that was not released in time", withCode("55P03")],
  ["a deadlock over one row", withCode("40P01")],
  ["a conflict over one row", withCode("40001")],
  ["an error that one of these caused", new Error("while applying", { cause: withCode("55P03") })],
])("runEach runs the items after %s", async (_title, error) => {
  expect(await run({ b: error })).toEqual({ ran: ["a", "b", "c", "d"], thrown: error });
});

test.each([
  ["is shut down", withCode("57P03")],
  ["has no free connection", withCode("53300")],
  ["is not reached", withCode("ECONNREFUSED")],
  ["closes the connection", new Error("Connection terminated unexpectedly")],
])("runEach ends when the store %s", async (_title, error) => {
  expect(await run({ b: error })).toEqual({ ran: ["a", "b"], thrown: error });
});
