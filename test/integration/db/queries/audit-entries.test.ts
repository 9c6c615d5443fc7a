import { sql } from "kysely";
import { expect, test } from "vitest";
import { type AuditEntry, insertAuditEntries, readAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { closeAuditDays } from "../../../../db/queries/audit-heads.ts";
import { hashEntry } from "../../../../runtime/audit-chain.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { execute } from "../../../support/execute-sql.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { mapConcurrently } from "../../../support/sign-payments.ts";

const entry = (changed: Partial<AuditEntry> = {}): AuditEntry => ({
  actor: { kind: "key", id: "key_1", address: "203.0.113.7" },
  action: "merchant.updated",
  subject: "mch_1",
  before: { name: 'A "quoted"\nname, \u007f and \u0001' },
  after: { name: "Bäckerei 🥐", tags: ["a", null, { b: 1 }] },
  at: new Date("2026-03-01T12:00:00.123Z"),
  ...changed,
});
const at = (text: string) => entry({ at: new Date(text) });

test("each entry is chained to the one before it, across days, by a hash that can be computed outside Postgres", async () => {
  const { db } = await openTestDb(2);
  await insertAuditEntries(db, [at("2026-03-01T23:59:59.999Z"), entry({ before: null, after: null })]);
  await insertAuditEntries(db, [
    entry({ actor: { kind: "worker", id: "w", address: null }, at: new Date("2026-03-03") }),
  ]);
  const rows = await readAuditEntries(db, { limit: 10 });
  expect(rows.map((row) => [row.day, row.sequence])).toEqual([
    ["2026-03-01", 1],
    ["2026-03-01", 2],
    ["2026-03-03", 1],
  ]);
  const expected = rows.map((row, index) => hashEntry(row, rows[index - 1]?.hash ?? null));
  expect(rows.map((row) => row.hash)).toEqual(expected);
});

test("an entry with an earlier time than the newest goes into the newest day", async () => {
  const { db } = await openTestDb(2);
  await insertAuditEntries(db, [at("2026-03-02T00:00:01Z"), at("2026-03-01T23:59:59Z")]);
  const rows = await readAuditEntries(db, { limit: 10 });
  expect(rows.map((row) => [row.day, row.sequence])).toEqual([
    ["2026-03-02", 1],
    ["2026-03-02", 2],
  ]);
});

test("an entry that a process dates in the future goes into the present day, which ends in time", async () => {
  const { db, url } = await openTestDb(2);
  await execute(
    await roleUrl(url, "api"),
    `insert into audit_entry (at, actor_kind, actor_id, action, subject)
      values ('9999-12-31T00:00:00Z', 'key', 'key_1', 'merchant.updated', 'mch_1')`,
  );
  const now = new Date();
  await insertAuditEntries(db, [entry({ at: now })]);
  const heads = await closeAuditDays(db, new Date(now.getTime() + 2 * 86_400_000));
  const [first, newest] = await readAuditEntries(db, { limit: 10 });
  expect(first?.at).toEqual(new Date("9999-12-31T00:00:00Z"));
  expect(heads.at(-1)?.hash).toBe(newest?.hash.toString("hex"));
});

test.each(["infinity", "-infinity", "10000-01-01T00:00:00Z"])(
  "an entry with the time %s, which no reader could verify, is refused",
  async (time) => {
    const { url } = await openTestDb(2);
    const insert = `insert into audit_entry (at, actor_kind, actor_id, action, subject) values ('${time}', 'key', 'k', 'a', 's')`;
    await expect(execute(await roleUrl(url, "api"), insert)).rejects.toThrow("audit_entry_at_check");
  },
);

test("concurrent transactions, some of which roll back, leave neither a gap nor a fork", async () => {
  const { db } = await openTestDb(12);
  const numbers = Array.from({ length: 60 }, (_, index) => index);
  await mapConcurrently(numbers, 12, (index) =>
    db
      .transaction()
      .execute(async (transaction) => {
        await insertAuditEntries(transaction, [entry({ subject: `mch_${index}` }), entry({ subject: `key_${index}` })]);
        if (index % 3 === 0) throw new Error("rolled back");
      })
      .catch(() => undefined),
  );
  const rows = await readAuditEntries(db, { limit: 1_000 });
  expect(rows.map((row) => row.sequence)).toEqual(Array.from({ length: 80 }, (_, index) => index + 1));
  expect(rows.every((row, index) => row.hash.equals(hashEntry(row, rows[index - 1]?.hash ?? null)))).toBe(true);
});

test("an entry can be neither changed nor deleted, and a writer cannot choose its place", async () => {
  const { db } = await openTestDb(2);
  await sql`insert into audit_entry (day, sequence, at, actor_kind, actor_id, action, subject, hash)
    values ('1999-01-01', 7, '2026-03-01T00:00:00Z', 'key', 'k', 'a', 's', '\\x00')`.execute(db);
  const [row] = await readAuditEntries(db, { limit: 1 });
  expect(row).toMatchObject({ day: "2026-03-01", sequence: 1 });
  for (const statement of [
    "update audit_entry set subject = 'x'",
    "delete from audit_entry",
    "truncate audit_entry cascade",
  ])
    await expect(sql.raw(statement).execute(db)).rejects.toThrow("append only");
});
