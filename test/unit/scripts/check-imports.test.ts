import { expect, test } from "vitest";
import { findViolations } from "../../../scripts/check-imports.ts";

test("the check reports a planted upward import and its line", () => {
  const text = ['import { z } from "zod";', "import {", "  openDb,", '} from "../../db/open.ts";'].join("\n");
  expect(findViolations([{ path: "api/gateway/gateway-options.ts", text }])).toEqual([
    { path: "api/gateway/gateway-options.ts", line: 2, from: "api", to: "db" },
  ]);
});

test("an inline type inside a value import counts, because the import still loads the file", () => {
  const text = 'import { type Db } from "../db/open.ts";';
  expect(findViolations([{ path: "queues/enqueue.ts", text }])).toHaveLength(1);
});

test("re-exports and dynamic imports count as imports", () => {
  const text = 'export { a } from "../payments/a.ts";\nconst b = await import("../transfers/b.ts");';
  expect(findViolations([{ path: "chains/open-chains.ts", text }]).map(({ to }) => to)).toEqual([
    "payments",
    "transfers",
  ]);
});

test("the check ignores type imports, the file's own module, allowed modules and packages", () => {
  const text = [
    'import type { Payment } from "../payments/states.ts";',
    'export type { Payment } from "../payments/states.ts";',
    'import { hash } from "./hash.ts";',
    'import { send } from "../chains/evm/send.ts";',
    'import { Redis } from "ioredis";',
  ].join("\n");
  expect(findViolations([{ path: "transfers/evm/drive-lanes.ts", text }])).toEqual([]);
});

test("entry points and the local stack may import anything", () => {
  const text = 'import { openDb } from "../db/open.ts";';
  const paths = ["api/main.ts", "ops/bull-board/main.ts", "local/seed-account.ts"];
  expect(findViolations(paths.map((path) => ({ path, text })))).toEqual([]);
});

test("every module may import the listed files of pure functions, but no other file of their module", () => {
  const text = 'import { cleanText } from "../runtime/clean-text.ts";\nimport { openLog } from "../ops/log.ts";';
  expect(findViolations([{ path: "chains/errors.ts", text }])).toEqual([
    { path: "chains/errors.ts", line: 2, from: "chains", to: "ops" },
  ]);
});
