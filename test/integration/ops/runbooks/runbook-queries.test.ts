import { expect, test } from "vitest";
import { readRunbooks } from "../../../runbooks/read-runbooks.ts";
import { execute } from "../../../support/execute-sql.ts";
import { createDatabase } from "../../../support/test-database.ts";

const queries = readRunbooks().flatMap(({ name, queries: own }) => own.map((query) => ({ file: name, query })));

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
