import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mutations } from "../../mutations/list-mutations.ts";
import { applyMutation, type Mutation, type Result, summarize } from "../../mutations/mutation.ts";

const mutation: Mutation = {
  name: "a lane pays more than the ceiling",
  file: "transfers/evm/gas-fees.ts",
  find: "if (fee > ceiling) return;",
  replace: "",
  tests: ["test/unit/transfers/evm/gas-fees.test.ts"],
};

test.each(mutations)("the source text of the mutation occurs exactly once: $file: $name", (one) => {
  const text = readFileSync(one.file, "utf8");
  expect(applyMutation(text, one)).not.toBe(text);
  for (const path of one.tests) expect(existsSync(path), path).toBe(true);
});

test("no mutation relies on a test that starts processes: they run a build of the sources before the mutation", () => {
  const paths = new Set(mutations.flatMap(({ tests }) => tests));
  const starting = [...paths].filter((path) =>
    /support\/(built-service|fleet|spawn-process)/.test(readFileSync(path, "utf8")),
  );
  expect(starting).toEqual([]);
});

test("the list holds at least eighty mutations with unique names", () => {
  expect(mutations.length).toBeGreaterThanOrEqual(80);
  expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length);
});

test("a mutation whose text is missing or occurs twice is an error that names the mutation", () => {
  expect(applyMutation("a; if (fee > ceiling) return; b", mutation)).toBe("a;  b");
  expect(() => applyMutation("a; b", mutation)).toThrow(
    /ceiling": its text occurs 0 times in transfers\/evm\/gas-fees.ts/,
  );
  expect(() => applyMutation(`${mutation.find} ${mutation.find}`, mutation)).toThrow(/occurs 2 times/);
});

test("a replacement is inserted literally, including special characters", () => {
  expect(applyMutation(`a ${mutation.find}`, { ...mutation, replace: "$& $1 $$" })).toBe("a $& $1 $$");
});

const caught: Result = { outcome: "caught", by: "a test" };
const survived: Result = { outcome: "survived" };
const tried = (results: readonly Result[], more: Partial<Mutation> = {}) =>
  results.map((result) => ({ mutation: { ...mutation, ...more }, result }));
const nineteen = tried(Array<Result>(19).fill(caught));

test("a run passes when it catches 95 % and every survivor has a justification", () => {
  const reason = { justification: "nothing changes that can be observed" };
  const { passes, lines } = summarize([...nineteen, ...tried([survived], reason)]);
  expect(passes).toBe(true);
  expect(lines).toEqual([
    "survived: a lane pays more than the ceiling (nothing changes that can be observed)",
    "19 of 20 mutations were caught: 95.0 %",
  ]);
});

test.each<[string, Parameters<typeof summarize>[0]]>([
  ["a surviving mutation has no justification", [...nineteen, ...tried([survived])]],
  [
    "less than 95 % are caught",
    [...nineteen, ...tried([survived, survived], { justification: "nothing that can be observed" })],
  ],
  [
    "a mutation could not be tested",
    [...nineteen, ...nineteen, ...tried([{ outcome: "broken", reason: "it did not load" }])],
  ],
  ["no mutation was tested", []],
])("a run fails when %s", (_why, results) => {
  expect(summarize(results).passes).toBe(false);
});
