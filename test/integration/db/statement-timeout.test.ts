import { sql } from "kysely";
import { expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { createDatabase } from "../../support/test-database.ts";

/** Returns the statement timeout of a connection opened with these options. */
async function timeoutOf(options: { statementTimeoutMs?: number }): Promise<string | undefined> {
  const db = openDb(await createDatabase(), { max: 1, ...options });
  try {
    const { rows } = await sql<{ statement_timeout: string }>`show statement_timeout`.execute(db);
    return rows[0]?.statement_timeout;
  } finally {
    await db.destroy();
  }
}

test("a statement has 15 seconds, and a migration has no limit", async () => {
  expect(await timeoutOf({})).toBe("15s");
  expect(await timeoutOf({ statementTimeoutMs: 0 })).toBe("0");
});
