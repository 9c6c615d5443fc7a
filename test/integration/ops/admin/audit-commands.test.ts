import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { insertAuditEntries, readAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { exportAuditHeads } from "../../../../payments/maintenance/audit-heads.ts";
import { hashEntry } from "../../../../runtime/audit-chain.ts";
import { openAuditSink } from "../../../../runtime/audit-sink.ts";
import { createLog } from "../../../../runtime/log.ts";
import { adminIn } from "../../../support/admin.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { listen } from "../../../support/listen.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testActor } from "../../../support/test-actor.ts";

const log = createLog({ level: "silent", role: "worker" });
const today = new Date("2026-03-03T09:00:00Z");

/** A log of two days that have ended, three entries each, and one entry of today, with its exported heads. */
async function writtenLog() {
  const { db, url } = await openTestDb(2);
  for (const day of ["01", "02", "03"])
    for (const hour of day === "03" ? ["08"] : ["10", "11", "12"]) {
      const entry = { actor: testActor, action: "merchant.updated", subject: `mch_${day}${hour}` };
      const at = new Date(`2026-03-${day}T${hour}:00:00Z`);
      await insertAuditEntries(db, [{ ...entry, before: { name: "old" }, after: { name: "new" }, at }]);
    }
  const heads = join(mkdtempSync(join(tmpdir(), "pay-audit-")), "heads.jsonl");
  await exportAuditHeads({ db, now: () => today, log }, openAuditSink(pathToFileURL(heads).href));
  return { db, heads, admin: adminIn({ DATABASE_URL: url }) };
}

/** Changes rows as a superuser would: triggers and foreign keys do not apply. */
const tamper = async (db: Awaited<ReturnType<typeof writtenLog>>["db"], ...statements: string[]) =>
  db.transaction().execute(async (db) => {
    await sql`set local session_replication_role = replica`.execute(db);
    for (const statement of statements) await sql.raw(statement).execute(db);
  });

const problems = async (admin: ReturnType<typeof adminIn>, ...args: string[]) => {
  const run = await admin("audit", "verify", "--json", ...args);
  const { findings } = JSON.parse(run.stdout);
  expect(run.code).toBe(findings.length === 0 ? 0 : 1);
  return findings.map((found: { day: string; sequence: number; problem: string }) =>
    [found.day, found.sequence, found.problem].join(" "),
  );
};

test("verify accepts a log as it was written, whole and by day, and names the newest entry", async () => {
  const { admin, heads } = await writtenLog();
  const run = await admin("audit", "verify", "--heads", heads);
  expect(run).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^7 entries, the newest is 2026-03-03\/1 with hash/),
  });
  expect(await problems(admin, "--day", "2026-03-02")).toEqual([]);
});

test.each([
  ["a changed entry", ["update audit_entry set after = '{}' where subject = 'mch_0211'"], ["2026-03-02 2 changed"]],
  [
    "a changed address",
    ["update audit_entry set actor_address = '::1' where subject = 'mch_0308'"],
    ["2026-03-03 1 changed"],
  ],
  ["a deleted entry", ["delete from audit_entry where subject = 'mch_0111'"], ["2026-03-01 2 missing"]],
  ["a truncated day", ["delete from audit_entry where subject = 'mch_0212'"], ["2026-03-02 3 missing"]],
  [
    "a deleted day",
    ["delete from audit_entry where day = '2026-03-02'"],
    ["2026-03-02 1 missing", "2026-03-02 2 missing", "2026-03-02 3 missing"],
  ],
  [
    "two reordered entries",
    [
      "update audit_entry set sequence = 9 where subject = 'mch_0110'",
      "update audit_entry set sequence = 1 where subject = 'mch_0111'",
      "update audit_entry set sequence = 2 where subject = 'mch_0110'",
    ],
    ["2026-03-01 1 changed", "2026-03-01 2 changed", "2026-03-01 3 changed"],
  ],
])("verify names %s", async (_what, statements, expected) => {
  const { db, admin } = await writtenLog();
  await tamper(db, ...statements);
  expect(await problems(admin)).toEqual(expected);
});

test("a log that a superuser rewrote with correct hashes differs from the exported heads", async () => {
  const { db, admin, heads } = await writtenLog();
  const rows = await readAuditEntries(db, { limit: 10 });
  let previous: Buffer | null = null;
  for (const row of rows) {
    const forged = row.subject === "mch_0112" ? { ...row, subject: "mch_forged" } : row;
    const hash: Buffer = hashEntry(forged, previous);
    await tamper(
      db,
      `update audit_entry set subject = '${forged.subject}', hash = '\\x${hash.toString("hex")}'
       where day = '${row.day}' and sequence = ${row.sequence}`,
    );
    previous = hash;
  }
  await tamper(
    db,
    "update audit_head h set hash = e.hash from audit_entry e where (e.day, e.sequence) = (h.day, h.sequence)",
  );
  expect(await problems(admin)).toEqual([]);
  expect(await problems(admin, "--heads", heads)).toEqual(["2026-03-01 3 rewritten", "2026-03-02 3 rewritten"]);
});

test("a day that has ended takes no more entries: a late one goes into the next day", async () => {
  const { db, admin, heads } = await writtenLog();
  await tamper(db, "delete from audit_entry where day = '2026-03-03'");
  const entry = { actor: testActor, action: "a", subject: "late", before: null, after: null };
  await insertAuditEntries(db, [{ ...entry, at: new Date("2026-03-02T23:59:59.999Z") }]);
  const [newest] = (await readAuditEntries(db, { limit: 10 })).slice(-1);
  expect(newest).toMatchObject({ day: "2026-03-03", sequence: 1, subject: "late" });
  expect(await problems(admin, "--heads", heads)).toEqual([]);
});

test("the exported lines of a day are enough to compute its hashes again", async () => {
  const { db, admin } = await writtenLog();
  const { stdout } = await admin("audit", "export", "--day", "2026-03-01");
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  let previous: Buffer | null = null;
  for (const line of lines) {
    previous = hashEntry({ ...line, at: new Date(line.at) }, previous);
    expect(line.hash).toBe(previous.toString("hex"));
  }
  expect(lines.length).toBe(3);
  expect((await readAuditEntries(db, { limit: 3 })).at(-1)?.hash).toEqual(previous);
});

test("audit list filters by day, subject and actor, newest first", async () => {
  const { admin } = await writtenLog();
  const list = async (...args: string[]) =>
    JSON.parse((await admin("audit", "list", "--json", ...args)).stdout).map((one: { subject: string }) => one.subject);
  expect(await list("--day", "2026-03-01")).toEqual(["mch_0112", "mch_0111", "mch_0110"]);
  expect(await list("--subject", "mch_0308")).toEqual(["mch_0308"]);
  expect(await list("--actor", "night watch")).toEqual([]);
  expect(await admin("audit", "list", "--day", "yesterday")).toMatchObject({ code: 2 });
});

test("heads are sent to an HTTP sink until it accepts them, each day once, whatever the number of workers", async () => {
  const { db } = await openTestDb(4);
  const received: { body: string; authorization: string | undefined }[] = [];
  const answers = [503, 200, 200];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      received.push({ body, authorization: request.headers.authorization });
      response.writeHead(answers.shift() ?? 200).end();
    });
  });
  const url = await listen(server);
  addCleanup(() => server.close());
  const sink = openAuditSink(url.replace("http://", "http://log:s%40cret@"));
  const entry = { actor: testActor, action: "a", before: null, after: null };
  for (const day of ["01", "02"])
    await insertAuditEntries(db, [{ ...entry, subject: day, at: new Date(`2026-03-${day}T10:00:00Z`) }]);
  const run = () => exportAuditHeads({ db, now: () => today, log }, sink);
  await expect(run()).rejects.toThrow("503");
  await Promise.all([run(), run(), run()]);
  await run();
  expect(received.map(({ body }) => JSON.parse(body).day)).toEqual(["2026-03-01", "2026-03-01", "2026-03-02"]);
  expect(received[0]?.authorization).toBe(`Basic ${Buffer.from("log:s@cret").toString("base64")}`);
  expect(JSON.parse(received[2]?.body ?? "")).toMatchObject({
    sequence: 1,
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test("a file of heads that holds anything else is refused with its line", async () => {
  const { admin, heads } = await writtenLog();
  writeFileSync(heads, `${readFileSync(heads, "utf8")}{"day":"2026-03-09"}\n`);
  expect(await admin("audit", "verify", "--heads", heads)).toMatchObject({
    code: 2,
    stderr: "--heads: line 3 is not a head of an audit log\n",
  });
  expect(await admin("audit", "verify", "--heads", import.meta.dirname)).toMatchObject({
    code: 2,
    stderr: `--heads: the file ${import.meta.dirname} cannot be read (EISDIR)\n`,
  });
});

test("an export shows no control characters of merchants' texts, and its values are those that the hashes cover", async () => {
  const { db, admin } = await writtenLog();
  const after = { name: "Shop\u009b2J\u202e" };
  const entry = { actor: testActor, action: "merchant.updated", subject: "mch_odd", before: null, after };
  await insertAuditEntries(db, [{ ...entry, at: new Date("2026-03-03T08:30:00Z") }]);
  const { stdout } = await admin("audit", "export", "--day", "2026-03-03");
  expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
  const exported = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const stored = await readAuditEntries(db, { day: "2026-03-03" });
  expect(exported.map((one) => one.after)).toEqual(stored.map((one) => one.after));
  expect(JSON.parse(exported.at(-1).after)).toEqual(after);
});
