import { sql } from "kysely";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import type { Db } from "../../../db/tables.ts";
import { isTransient } from "../../../payments/is-transient.ts";
import { createLog } from "../../../runtime/log.ts";
import { readLogFields, withLogFields } from "../../../runtime/log-context.ts";
import { instrumentStatements } from "../../../runtime/metrics/pool-metrics.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { execute } from "../../support/execute-sql.ts";
import { inRealTime } from "../../support/in-real-time.ts";
import { startReplicatedPostgres } from "../../support/replicated-postgres.ts";
import { startTcpRelay } from "../../support/tcp-relay.ts";
import { createEmptyDatabase } from "../../support/test-database.ts";
import { waitFor } from "../../support/wait-for.ts";

const open = (url: string, options: Parameters<typeof openDb>[1] = {}) => {
  const db = openDb(url, { max: 1, ...options });
  addCleanup(() => db.destroy());
  return db;
};
const write = (db: Db) => sql`insert into noted values (1)`.execute(db);
const prepare = (url: string) => execute(url, "create table noted (n int)");

test("a pool that reaches a standby fails with a transient error until the standby is promoted", async () => {
  const postgres = await startReplicatedPostgres();
  await prepare(postgres.url);
  await postgres.catchUp();
  const db = open(postgres.replicaUrl);
  const refused = await sql`select 1`.execute(db).catch((error: unknown) => error);
  expect(refused).toMatchObject({ message: "the database server is a standby and not the primary" });
  expect(isTransient(refused)).toBe(true);
  await postgres.failOver();
  await write(db);
});

test("a connection whose server has become read-only fails once and is not used again", async () => {
  const url = await createEmptyDatabase();
  await prepare(url);
  const db = open(url);
  await sql`set session characteristics as transaction read only`.execute(db);
  const refused = await write(db).catch((error: unknown) => error);
  expect(isTransient(refused)).toBe(true);
  await write(db);
});

test(
  "a statement that a vanished server never answers fails its transaction at once, and the connection is given up",
  inRealTime,
  async () => {
    const url = await createEmptyDatabase();
    await prepare(url);
    const gone = await startTcpRelay({ target: Number(new URL(url).port) });
    const through = new URL(url);
    through.port = String(gone.port);
    const db = open(through.href, { statementTimeoutMs: 100 });
    let failedAt = Number.POSITIVE_INFINITY;
    const transaction = db.transaction().execute(async (open) => {
      await write(open);
      gone.freeze();
      await write(open).finally(() => {
        failedAt = performance.now();
      });
    });
    const unanswered = await transaction.catch((error: unknown) => error);
    expect(isTransient(unanswered), String(unanswered)).toBe(true);
    expect(performance.now() - failedAt, "the rollback waits for no timeout, which takes 5.1 s").toBeLessThan(4_000);
    expect(db.connections()).toMatchObject({ used: 0, idle: 0 });
  },
);

test("the log line of a lost connection does not name the request that opened the connection", async () => {
  const url = await createEmptyDatabase();
  const lines: string[] = [];
  const log = createLog(
    { level: "warn", role: "api", context: readLogFields },
    { write: (line) => void lines.push(line) },
  );
  const db = open(url, instrumentStatements(createMetrics(new Registry(), "api"), log));
  await withLogFields({ requestId: "long-ago" }, () => sql`select 1`.execute(db));
  await execute(
    url,
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  const line = await waitFor(() => lines.find((one) => one.includes("database connection lost")), { within: 10_000 });
  expect(line).not.toContain("long-ago");
});
