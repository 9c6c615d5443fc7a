import { describe, expect, test } from "vitest";
import { allowedImports, findSql, findViolations } from "../../../scripts/check-imports.ts";

const planted = (path: string, text: string) => findViolations([{ path, text }]);

test("the check reports an import from a module above, with its line", () => {
  const text = ['import { z } from "zod";', "import {", "  createPayment,", '} from "../payments/create.ts";'].join(
    "\n",
  );
  expect(planted("db/open.ts", text)).toEqual([{ path: "db/open.ts", line: 2, from: "db", to: "payments" }]);
});

describe.each([
  ["a named import", 'import { openDb } from "../db/open.ts";'],
  ["a default import", 'import openDb from "../db/open.ts";'],
  ["a namespace import", 'import * as db from "../db/open.ts";'],
  ["an import for its side effects", 'import "../db/open.ts";'],
  ["an import over several lines", 'import {\n  openDb,\n  closeDb,\n} from "../db/open.ts";'],
  ["an inline type, because the import still loads the file", 'import { type Db } from "../db/open.ts";'],
  ["a re-export of a name", 'export { openDb } from "../db/open.ts";'],
  ["a re-export of everything", 'export * from "../db/open.ts";'],
  ["a dynamic import", 'const db = await import("../db/open.ts");'],
  ["a dynamic import with a template literal", "const db = await import(`../db/open.ts`);"],
  ["an import of JSON", 'import rows from "../db/rows.json" with { type: "json" };'],
])("%s", (_name, text) => {
  test("is reported when its direction is not allowed", () => {
    expect(planted("queues/enqueue.ts", text).map(({ to }) => to)).toEqual(["db"]);
  });

  test("is allowed when its direction is allowed", () => {
    expect(planted("transfers/watch-pass.ts", text)).toEqual([]);
  });
});

test("type imports, imports within a module, packages and files outside all modules are allowed", () => {
  const text = [
    'import type { Payment } from "../../payments/views.ts";',
    'export type { Payment } from "../../payments/views.ts";',
    'import { gasFees } from "./gas-fees.ts";',
    'import { headAge } from "../head-age.ts";',
    'import { Redis } from "ioredis";',
    'import manifest from "../../package.json" with { type: "json" };',
  ].join("\n");
  expect(planted("transfers/evm/drive-lanes.ts", text)).toEqual([]);
});

test("only an entry point may import every module", () => {
  const text = 'import { openDb } from "../db/open.ts";';
  expect(planted("api/main.ts", text)).toEqual([]);
  expect(planted("api/server.ts", text)).toHaveLength(1);
});

test("every module of the service may import runtime, and runtime imports no other module", () => {
  const modules = Object.keys(allowedImports).filter((module) => !["runtime", "client", "cli"].includes(module));
  for (const module of modules) {
    expect(planted(`${module}/a.ts`, 'import { openLog } from "../runtime/log.ts";'), module).toEqual([]);
    expect(planted("runtime/log.ts", `import { a } from "../${module}/a.ts";`), module).toHaveLength(1);
  }
});

test("no module may import a top module, and no circle of modules is allowed", () => {
  const top = ["scripts", "cli", "local", "ops", "api", "workers"];
  for (const [module, allowed] of Object.entries(allowedImports)) {
    expect(
      allowed.filter((other) => top.includes(other)),
      module,
    ).toEqual([]);
    for (const other of allowed) expect(allowedImports[other], `${other} imports ${module}`).not.toContain(module);
  }
});

test("a module that is not listed, such as the tests, may be imported by none", () => {
  expect(planted("ops/admin/command.ts", 'import { a } from "../../test/support/a.ts";')).toHaveLength(1);
});

describe.each([
  ["the template of kysely", 'import { sql } from "kysely";'],
  ["a helper of kysely", 'import { jsonArrayFrom } from "kysely/helpers/postgres";'],
  ["a select", 'const rows = await db\n  .selectFrom("payment").selectAll().execute();'],
  ["an insert", 'await db.insertInto("payment").values(row).execute();'],
  ["an update", 'await db.updateTable("payment").set(row).execute();'],
  ["a delete", 'await db.deleteFrom("payment").execute();'],
])("%s", (_name, text) => {
  test.each([
    "payments/lifecycle/expire-payment.ts",
    "api/main.ts",
    "workers/sweep.ts",
    "queues/a.ts",
    "transfers/a.ts",
  ])("is reported in %s", (path) => {
    expect(findSql([{ path, text }]).map((found) => found.path)).toEqual([path]);
  });

  test("is allowed in db", () => {
    expect(findSql([{ path: "db/queries/payments.ts", text }])).toEqual([]);
  });
});

test("types of kysely are allowed everywhere, and the report of SQL names the line", () => {
  const types = 'import type { Selectable } from "kysely";';
  const query = 'const row = db.selectFrom("payment");';
  expect(findSql([{ path: "payments/views.ts", text: types }])).toEqual([]);
  expect(findSql([{ path: "payments/views.ts", text: `${types}\n\n${query}` }])).toEqual([
    { path: "payments/views.ts", line: 3 },
  ]);
});

test("the client, which others install without the service, imports no module", () => {
  for (const module of Object.keys(allowedImports).filter((module) => module !== "client"))
    expect(planted("client/a.ts", `import { a } from "../${module}/a.ts";`), module).toHaveLength(1);
});
