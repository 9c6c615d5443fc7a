import { createHash } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { listAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { createOperators } from "../../../support/create-operators.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testEncryption } from "../../../support/test-deps.ts";

const { db, url } = await openTestDb(2);
await createOperators({ db, now: () => new Date(), ...testEncryption() });
const client = new pg.Client({ connectionString: await roleUrl(url, "board") });
await client.connect();
addCleanup(() => client.end());

const hash = (token: string) => createHash("sha256").update(token).digest();
const signIn = (operator: string, token: string) =>
  client.query("insert into operator_session (token_hash, operator, address) values ($1, $2, '192.0.2.7')", [
    hash(token),
    operator,
  ]);
const record = (token: string, queue: string, job: string | null, jobs: number) =>
  client.query("select record_retried_jobs($1, $2, $3, $4)", [hash(token), queue, job, jobs]);
const entries = async () =>
  (await listAuditEntries(db, { day: undefined, subject: undefined, actor: "olga", limit: 10 })).map(
    ({ action, subject, actor_kind, actor_address, after }) => [action, subject, actor_kind, actor_address, after],
  );

test("a taken-over board makes no session that outlives 12 hours", async () => {
  for (const column of ["created_at", "expires_at"])
    await expect(
      client.query(
        `insert into operator_session (token_hash, operator, address, ${column}) values ('x', 'anna', '192.0.2.7', 'infinity')`,
      ),
    ).rejects.toThrow("permission denied");
  await signIn("anna", "of-anna");
  await expect(client.query("update operator_session set expires_at = 'infinity'")).rejects.toThrow(
    "permission denied",
  );
  const { rows } = await client.query("select (expires_at - now())::text as left from operator_session");
  expect(rows).toEqual([{ left: expect.stringMatching(/^(12:00:00|11:59:)/) }]);
});

test("a taken-over board reads no URL of a webhook endpoint", async () => {
  for (const statement of ["select url from webhook_endpoint", "select * from webhook_endpoint"])
    await expect(client.query(statement)).rejects.toThrow("permission denied");
  expect((await client.query("select origin from webhook_endpoint")).rows).toEqual([]);
});

test.each([
  ["https://user:s3cret@a.example:8443/hooks/s3cret?x=s3cret#s3cret", "https://a.example:8443"],
  ["HTTP://a.example?s3cret", "HTTP://a.example"],
  ["https://a.example\\s3cret@b.example/", "https://a.example"],
  ["https://a.example/s3cret@b.example", "https://a.example"],
  ["https://s3cret@s3cret@a.example", "https://a.example"],
  ["ftp://s3cret", null],
])("of %s it reads %s", async (given, origin) => {
  const { rows } = await client.query<{ expression: string }>(
    "select pg_get_expr(adbin, adrelid) as expression from pg_attrdef where adrelid = 'webhook_endpoint'::regclass and adnum = (select attnum from pg_attribute where attrelid = 'webhook_endpoint'::regclass and attname = 'origin')",
  );
  const read = await client.query(`select ${rows[0]?.expression} as origin from (select $1::text as url) given`, [
    given,
  ]);
  expect(read.rows).toEqual([{ origin }]);
});

test("a taken-over board writes no audit entry of its own wording, and none in the name of an operator without a session", async () => {
  await expect(
    client.query(
      "insert into audit_entry (at, actor_kind, actor_id, action, subject) values (now(), 'operator', 'anna', 'merchant.payouts_held', 'mrch_1')",
    ),
  ).rejects.toThrow("permission denied");
  await expect(record("unknown", "settle", null, 1)).rejects.toThrow("no operator has this session");
  await signIn("vera", "of-vera");
  await expect(record("of-vera", "settle", null, 1)).rejects.toThrow("no operator has this session");
  await signIn("olga", "expired");
  await db
    .updateTable("operator_session")
    .set({ expires_at: new Date(0) })
    .where("operator", "=", "olga")
    .execute();
  await expect(record("expired", "settle", null, 1)).rejects.toThrow("no operator has this session");
  await signIn("olga", "of-olga");
  for (const [queue, job, jobs] of [
    ["anna has stolen money", null, 1],
    ["settle", "anna has stolen money", 1],
    ["settle", "", 1],
    ["settle", null, 0],
  ] as const)
    await expect(record("of-olga", queue, job, jobs)).rejects.toThrow("is not valid");
  await record("of-olga", "settle", "settle-1", 1);
  await record("of-olga", "settle", null, 7);
  expect(await entries()).toEqual([
    ["failed_jobs.retried", "settle", "operator", "192.0.2.7", '{"jobs":7}'],
    ["job.retried", "settle/settle-1", "operator", "192.0.2.7", '{"jobs":1}'],
    ["operator.signed_in", "olga", "operator", "192.0.2.7", null],
    ["operator.signed_in", "olga", "operator", "192.0.2.7", null],
  ]);
  await db.updateTable("operator").set({ disabled_at: new Date() }).where("name", "=", "olga").execute();
  await expect(record("of-olga", "settle", null, 1)).rejects.toThrow("no operator has this session");
});
