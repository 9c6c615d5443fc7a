import { describe, expect, test } from "vitest";
import { roles } from "../../../db/grants/roles.ts";
import { migrateDatabase } from "../../../db/migrate.ts";
import { execute, namedDatabase } from "../../support/execute-sql.ts";
import { startPrivatePostgres } from "../../support/private-services.ts";

const server = await startPrivatePostgres();
const names = Object.values(roles);
const existing = async () =>
  (await execute(server.url, "select rolname from pg_roles where rolname like 'pay\\_%' order by 1")).map(
    ({ rolname }) => rolname,
  );

/** Creates a database that belongs to a plain role. Returns the URL by which this role connects to it. */
async function createOwnedDatabase(name: string, attributes = ""): Promise<string> {
  await execute(
    server.url,
    `create role owner_of_${name} login password 'secret' ${attributes}`,
    `create database ${name} owner owner_of_${name}`,
  );
  const url = new URL(namedDatabase(server.url, name));
  url.username = `owner_of_${name}`;
  url.password = "secret";
  return url.href;
}

// In this order: the first test needs a server without the roles.
describe("the roles of a server", () => {
  test("`migrate` prints what an administrator has to run for an owner who may not create roles", async () => {
    const url = await createOwnedDatabase("plain");
    await expect(migrateDatabase(url)).rejects.toThrow("create role pay_api nologin; create role pay_worker nologin");
    await execute(server.url, ...names.map((name) => `create role ${name} nologin`));
    await migrateDatabase(url);
    expect(await existing()).toEqual([...names].sort());
  });

  test("the error for a role that may not create extensions names the one that an administrator has to create", async () => {
    const url = await createOwnedDatabase("lent");
    await execute(server.url, "alter database lent owner to current_user");
    const lent = namedDatabase(server.url, "lent");
    await execute(lent, "grant all on schema public to owner_of_lent");
    await expect(migrateDatabase(url)).rejects.toThrow("as an administrator run: create extension pg_trgm");
    await execute(lent, "create extension pg_trgm");
    await migrateDatabase(url);
    await execute(server.url, "drop database lent");
  });

  test("migrations of several databases create the roles at the same time", async () => {
    await execute(server.url, "drop database plain", ...names.map((name) => `drop role ${name}`));
    const urls = ["one", "two", "three"].map((name) => createOwnedDatabase(name, "superuser"));
    await Promise.all((await Promise.all(urls)).map((url) => migrateDatabase(url)));
    expect(await existing()).toEqual([...names].sort());
  });

  test("an owner without further privileges is enough for a whole ledger booking by a worker", async () => {
    const url = await createOwnedDatabase("owned");
    await migrateDatabase(url);
    await execute(server.url, "create role worker_1 login password 'secret' in role pay_worker");
    const worker = new URL(url);
    worker.username = "worker_1";
    await execute(
      worker.href,
      "begin",
      `insert into ledger_group (kind, subject, at) values ('capital', 'first', '2026-01-01')`,
      `insert into ledger_entry (group_id, account, asset, amount)
        select id, account, 'usd', amount from ledger_group, (values ('treasury', 5), ('capital', -5)) e (account, amount)`,
      "commit",
    );
    expect(
      await execute(worker.href, "select account, sum(amount)::int as amount from ledger_day group by 1 order by 1"),
    ).toEqual([
      { account: "capital", amount: -5 },
      { account: "treasury", amount: 5 },
    ]);
  });
});
