import { expect, test } from "vitest";
import { findReplacedWords, wordsOf } from "../../../scripts/check-vocabulary.ts";

const words = (path: string, text: string) => findReplacedWords({ path, text }).map(({ line, word }) => [line, word]);

test("the check reports planted identifiers and their lines", () => {
  const text = "const lane = 1;\nconst strayKey = look(lane);\nexport type CHAIN_FAULTS = never;";
  expect(words("chains/errors.ts", text)).toEqual([
    [2, "stray"],
    [2, "look"],
    [3, "fault"],
  ]);
});

test("the check reads identifiers in templates, in SQL and in strings without spaces", () => {
  const text = "log(`sent $" + '{till.name} again`);\nsql`select told from lane`;\nconst kind = "stray";';
  expect(words("db/queries/lanes.ts", text)).toEqual([
    [1, "till"],
    [2, "told"],
    [3, "stray"],
  ]);
});

test("the check allows common words in comments, texts and patterns", () => {
  const text = '// Turn to the room again.\nthrow new Error("ask again");\nexpect(text).toMatch(/pay again/);';
  expect(words("api/server.ts", text)).toEqual([]);
});

test("the check reports the worst words in prose", () => {
  expect(words("docs/money.md", "The ledger.\nWhoever answers is paid.")).toEqual([[2, "whoever"]]);
  expect(words("api/server.ts", "// The doorbell.")).toEqual([[1, "doorbell"]]);
});

test("the check reports replaced words in columns, metrics and alerts", () => {
  expect(words("db/schema.sql", "create table lane (\n  rung boolean\n);")).toContainEqual([2, "rung"]);
  expect(words("ops/prometheus/alerts.yml", "- alert: RingsFail\n  expr: pay_ring_failures_total > 0")).toEqual([
    [1, "ring"],
    [2, "ring"],
  ]);
});

test("the check allows the names of fault injection in tests, but not in the service", () => {
  const text = "const proxy = await startFaultProxy();";
  expect(words("test/support/fault-proxy.ts", text)).toEqual([]);
  expect(words("chains/failover.ts", text)).toEqual([[1, "fault"]]);
});

test("a name is split into words at capitals, digits and underscores", () => {
  expect(wordsOf("verifyIn_TURNS2RPCRings")).toEqual(["verify", "in", "turn", "rpc", "ring"]);
});
