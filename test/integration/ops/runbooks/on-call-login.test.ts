import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { readRunbooks } from "../../../runbooks/read-runbooks.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { execute } from "../../../support/execute-sql.ts";
import { createDatabase } from "../../../support/test-database.ts";

const page = readFileSync(new URL("../../../../docs/operations.md", import.meta.url), "utf8");
const [, statement = ""] = /^(create role shop_on_call login .+);$/m.exec(page) ?? [];
const databaseUrl = await createDatabase();
const name = `on_call_${randomBytes(4).toString("hex")}`;
await execute(databaseUrl, statement.replace("shop_on_call", name).replace("'…'", "'secret'"));
addCleanup(() => execute(databaseUrl, `drop role ${name}`));
const url = new URL(databaseUrl);
Object.assign(url, { username: name, password: "secret" });
const queries = readRunbooks().flatMap(({ name: file, queries: own }) => own.map((query) => ({ file, query })));
/** The runbook names the role for the query that reads signatures. */
const readsSignatures = (query: string) => query.includes("signature, ") || query.includes("'signature', signature");

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, application_name: "pay-worker" });
  onTestFinished(() => client.end());
  await client.connect();
  return client;
}

test("the documented login for people on call runs every query of the runbooks", async () => {
  const admin = await roleUrl(databaseUrl, "admin");
  for (const { file, query } of queries) {
    const answer = await execute(readsSignatures(query) ? admin : url.href, query).then(
      () => "answered",
      (error: unknown) => String(error),
    );
    expect(`${file}: ${query}: ${answer}`).toBe(`${file}: ${query}: answered`);
  }
});

test("a person on call finds the session that blocks the gauges, and ends it", async () => {
  const blocking = await connect(await roleUrl(databaseUrl, "worker"));
  const ended = new Promise((resolve) => blocking.on("error", resolve));
  await blocking.query("begin; lock table failed_booking in row exclusive mode");
  const {
    rows: [{ pid }],
  } = await blocking.query("select pg_backend_pid() as pid");
  const waiting = await connect(databaseUrl);
  const locks = "begin; lock table failed_booking in access exclusive mode";
  const waits = waiting.query(locks);
  const [query = ""] = queries.filter(({ file }) => file === "gauges-not-read").map((one) => one.query);
  await expect
    .poll(() => execute(url.href, query))
    .toContainEqual(expect.objectContaining({ blocked_by: [pid], left: locks }));
  await execute(url.href, `select pg_terminate_backend(${pid})`);
  await ended;
  await waits;
});
