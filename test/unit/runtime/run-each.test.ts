import { expect, test } from "vitest";
import { runEach } from "../../../runtime/run-each.ts";

async function run(errors: Record<string, Error>) {
  const ran: string[] = [];
  const step = async (item: string) => {
    ran.push(item);
    const error = errors[item];
    if (error) throw error;
  };
  const isTransient = (error: unknown) => error instanceof Error && error.message === "unavailable";
  const thrown = await runEach(["a", "b", "c", "d"], step, { isTransient }).catch((error: unknown) => error);
  return { ran, thrown };
}
const [bug, other, transient] = [new Error("a bug"), new Error("another bug"), new Error("unavailable")];

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
