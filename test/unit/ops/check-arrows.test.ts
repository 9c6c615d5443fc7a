import { expect, test } from "vitest";
import { findViolations } from "../../../ops/check-arrows.ts";

test("a planted import against the arrows is found, with its place", () => {
  const text = ['import { z } from "zod";', "import {", "  openDb,", '} from "../../db/open.ts";'].join("\n");
  expect(findViolations([{ path: "api/gateway/options.ts", text }])).toEqual([
    { path: "api/gateway/options.ts", line: 2, from: "api", to: "db" },
  ]);
});

test("a name marked as type inside a value import still loads the file and counts", () => {
  const text = 'import { type Db } from "../db/open.ts";';
  expect(findViolations([{ path: "queues/ring.ts", text }])).toHaveLength(1);
});

test("re-exports and dynamic imports count too", () => {
  const text = 'export { a } from "../payments/a.ts";\nconst b = await import("../transfers/b.ts");';
  expect(findViolations([{ path: "chains/open.ts", text }]).map(({ to }) => to)).toEqual(["payments", "transfers"]);
});

test("types, one's own room, allowed rooms and packages are left alone", () => {
  const text = [
    'import type { Payment } from "../payments/states.ts";',
    'export type { Payment } from "../payments/states.ts";',
    'import { hash } from "./hash.ts";',
    'import { send } from "../chains/evm/send.ts";',
    'import { Redis } from "ioredis";',
  ].join("\n");
  expect(findViolations([{ path: "transfers/relay.ts", text }])).toEqual([]);
});

test("entry points and the local stack may import anything", () => {
  const text = 'import { openDb } from "../db/open.ts";';
  const paths = ["api/main.ts", "ops/bull-board/main.ts", "ops/local/seed.ts"];
  expect(findViolations(paths.map((path) => ({ path, text })))).toEqual([]);
});

test("every module may import the pure functions that are named as such, and no other file of their module", () => {
  const text = 'import { cleanText } from "../ops/clean-text.ts";\nimport { openLog } from "../ops/log.ts";';
  expect(findViolations([{ path: "chains/faults.ts", text }])).toEqual([
    { path: "chains/faults.ts", line: 2, from: "chains", to: "ops" },
  ]);
});
