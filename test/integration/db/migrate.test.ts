import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { dumpSchema } from "../../../db/dump-schema.ts";
import { migrateDatabase } from "../../../db/migrate.ts";
import { listTransitions } from "../../../db/states.ts";
import { execute } from "../../support/execute-sql.ts";
import { createDatabase, createEmptyDatabase } from "../../support/test-database.ts";

test("migrating twice does nothing the second time", async () => {
  const url = await createEmptyDatabase();
  expect((await migrateDatabase(url)).length).toBeGreaterThan(0);
  const schema = await dumpSchema(url);
  expect(await migrateDatabase(url)).toEqual([]);
  expect(await dumpSchema(url)).toBe(schema);
});

test("several replicas that migrate at once run each migration once, and all of them go on", async () => {
  const url = await createEmptyDatabase();
  const ran = await Promise.all([1, 2, 3, 4].map(() => migrateDatabase(url)));
  expect(ran.filter((names) => names.length > 0)).toHaveLength(1);
  expect(await dumpSchema(url)).toBe(await dumpSchema(await createDatabase()));
});

test("db/schema.sql is what the migrations make; `npm run db:schema` writes it anew", async () => {
  const file = await readFile(new URL("../../../db/schema.sql", import.meta.url), "utf8");
  expect(file).toBe(await dumpSchema(await createDatabase()));
});

test("Postgres knows the moves of the states and no other", async () => {
  const rows = await execute(await createDatabase(), "select machine, from_state, to_state from transition");
  const text = (move: Record<string, unknown>) => `${move["machine"]} ${move["from_state"]} ${move["to_state"]}`;
  expect(rows.map(text).sort()).toEqual(listTransitions().map(text).sort());
});
