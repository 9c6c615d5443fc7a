import { expect, test } from "vitest";
import { execute } from "../../support/execute-sql.ts";
import { startReplicatedPostgres } from "../../support/replicated-postgres.ts";

test("a failover to a frozen replica keeps replicated commits and loses later ones", async () => {
  const postgres = await startReplicatedPostgres();
  await execute(postgres.url, "create table kept (n int)", "insert into kept values (1)");
  await postgres.catchUp();
  postgres.freeze();
  await execute(postgres.url, "insert into kept values (2)");
  await postgres.failOver();
  expect(await execute(postgres.url, "select n from kept")).toEqual([{ n: 1 }]);
  await execute(postgres.url, "insert into kept values (3)");
  const [position] = await execute(postgres.url, "select pg_walfile_name(pg_current_wal_lsn()) as file");
  expect(String(position?.["file"]).slice(0, 8)).toBe("00000002");
});

test("a failover to a lagging replica loses the commits within its lag", async () => {
  const postgres = await startReplicatedPostgres({ lagMs: 2_000 });
  await execute(postgres.url, "create table kept (n int)");
  await postgres.catchUp();
  await execute(postgres.url, "insert into kept values (1)");
  await postgres.failOver();
  expect(await execute(postgres.url, "select n from kept")).toEqual([]);
});
