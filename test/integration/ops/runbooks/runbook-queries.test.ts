import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { execute } from "../../../support/execute-sql.ts";
import { createDatabase } from "../../../support/test-database.ts";

const folder = new URL("../../../../ops/runbooks/", import.meta.url);

/** Statements in code blocks and in running text. */
const queries = readdirSync(folder).flatMap((file) => {
  const text = readFileSync(new URL(file, folder), "utf8");
  const blocks = [...text.matchAll(/```sql\n([^`]+)```/g), ...text.matchAll(/`(select [^`]+)`/g)];
  return blocks.flatMap(([, block = ""]) =>
    block
      .split(";")
      .map((query) => query.trim())
      .filter(Boolean)
      .map((query) => ({ file, query })),
  );
});

test("the runbooks contain more than ten queries", () => expect(queries.length).toBeGreaterThan(10));

test("every query in a runbook runs on the current schema", async () => {
  const url = await createDatabase();
  for (const { file, query } of queries) {
    const answer = await execute(url, query).then(
      () => "answered",
      (error: unknown) => String(error),
    );
    expect(`${file}: ${query}: ${answer}`).toBe(`${file}: ${query}: answered`);
  }
});
