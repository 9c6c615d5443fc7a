import pg from "pg";
import { expect, test } from "vitest";
import { insertAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { lockReports } from "../../../../db/queries/destination-reports.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testActor } from "../../../support/test-actor.ts";

// A login that only reads cannot keep audited changes and reports to the signer waiting.

const { db, url } = await openTestDb(2);

const entry = { actor: testActor, action: "merchant.updated", subject: "mch_1", before: null, after: null };

test("a reader that holds the advisory locks of the same names stops neither an audited change nor a report", async () => {
  const reader = new pg.Client({ connectionString: await roleUrl(url, "reader") });
  await reader.connect();
  addCleanup(() => reader.end());
  for (const name of ["audit_entry", "destination reports"])
    await reader.query("select pg_advisory_lock(hashtextextended($1, 0))", [name]);
  await insertAuditEntries(db, [{ ...entry, at: new Date() }]);
  expect(await db.transaction().execute(lockReports)).toBe(true);
  for (const statement of [
    "select from named_lock for update",
    "select from named_lock for key share",
    "select lock_audit_chain()",
    "select try_lock_destination_reports()",
  ])
    await expect(reader.query(statement)).rejects.toMatchObject({ code: "42501" });
});

test("one worker reports at a time, and the next one when it has committed", async () => {
  await db.transaction().execute(async (first) => {
    expect(await lockReports(first)).toBe(true);
    expect(await db.transaction().execute(lockReports)).toBe(false);
  });
  expect(await db.transaction().execute(lockReports)).toBe(true);
});
