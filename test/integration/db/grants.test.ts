import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import type { AnyPrivileges } from "../../../db/grants/privileges.ts";
import { type Role, roles } from "../../../db/grants/roles.ts";
import { grants } from "../../../db/grants.ts";
import { type Migrations, migrateDatabase, readMigrations } from "../../../db/migrate.ts";
import { migrationNames } from "../../../db/migration-names.ts";
import { highestVersion } from "../../../db/schema-version.ts";
import { memberNames } from "../../../runtime/member-names.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { roleUrl } from "../../support/database-roles.ts";
import { execute } from "../../support/execute-sql.ts";
import { createDatabase, createEmptyDatabase } from "../../support/test-database.ts";

const url = await createEmptyDatabase();
await migrateDatabase(url);
const REFUSED = "42501";

/** The columns of every table of the schema. */
let tables: { name: keyof typeof grants; columns: string[] }[];

beforeAll(async () => {
  const rows = await execute(
    url,
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm') group by c.relname`,
  );
  tables = rows as typeof tables;
});

async function connect(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  addCleanup(() => client.end());
  return client;
}

const connectAs = async (role: Role, databaseUrl = url) => connect(await roleUrl(databaseUrl, role));

/** Runs a statement and undoes it. Returns the SQLSTATE of its error, or undefined. */
async function attempt(client: pg.Client, statement: string): Promise<string | undefined> {
  await client.query("begin");
  try {
    await client.query(statement);
    return undefined;
  } catch (error) {
    return error instanceof pg.DatabaseError ? error.code : String(error);
  } finally {
    await client.query("rollback");
  }
}

/** Statements on some columns. `explain` checks the privileges of the statement as its execution does, and changes nothing. */
const statements = {
  select: (table: string, columns: readonly string[]) => `explain select ${columns.map(quote)} from ${table}`,
  insert: (table: string, columns: readonly string[]) =>
    `explain insert into ${table} (${columns.map(quote)}) values (${columns.map(() => "default")})`,
  update: (table: string, columns: readonly string[]) =>
    `explain update ${table} set ${columns.map((column) => `${quote(column)} = default`)}`,
};

const quote = (column: string) => `"${column}"`;

test("the grants name every table of the schema, and no other", () => {
  expect(memberNames(grants).sort()).toEqual(tables.map(({ name }) => name).sort());
});

describe.each(memberNames(roles))("the role %s", (role) => {
  const privilegesOn = (table: keyof typeof grants): AnyPrivileges => grants[table][role] ?? {};

  test.each(memberNames(statements))("may %s what the grants name, and nothing else", async (verb) => {
    const client = await connectAs(role);
    const wrong: string[] = [];
    for (const { name, columns } of tables) {
      const granted = privilegesOn(name)[verb] ?? [];
      const allowed = typeof granted === "object" ? granted : columns;
      if (allowed.length > 0 && (await attempt(client, statements[verb](name, allowed))) !== undefined)
        wrong.push(`may not ${verb} ${name}`);
      for (const column of columns.filter((one) => !allowed.includes(one)))
        if ((await attempt(client, statements[verb](name, [column]))) !== REFUSED)
          wrong.push(`may ${verb} ${name}.${column}`);
    }
    expect(wrong).toEqual([]);
  });

  test("may delete from the tables that the grants name, and truncate none", async () => {
    const client = await connectAs(role);
    const deletable: string[] = [];
    const truncatable: string[] = [];
    for (const { name } of tables) {
      if ((await attempt(client, `explain delete from ${name}`)) === undefined) deletable.push(name);
      if ((await attempt(client, `truncate ${name} cascade`)) !== REFUSED) truncatable.push(name);
    }
    expect(deletable.sort()).toEqual(
      memberNames(grants)
        .filter((table) => privilegesOn(table).delete)
        .sort(),
    );
    expect(truncatable).toEqual([]);
  });

  test.each([
    "set session_replication_role = replica",
    "alter table ledger_entry disable trigger all",
    "alter table event disable trigger event_append_only",
    "drop trigger ledger_entry_append_only on ledger_entry",
    "create table public.mine (id text)",
    "create function public.mine() returns void language sql as ''",
    "update ledger_entry set amount = 1",
    "delete from event",
    "update audit_entry set actor_id = 'nobody'",
    "delete from audit_entry",
    "insert into ledger_day (account, asset, day, shard, amount) values ('payable:mrch_1', 'a', now(), 0, 1)",
    "set role pay_admin; reset role; alter role pay_api login",
  ])("may not run: %s", async (statement) => {
    const client = await connectAs(role);
    expect(await attempt(client, statement)).toBe(REFUSED);
  });

  test("cannot run a trigger function with its owner's privileges", async () => {
    const client = await connectAs(role);
    const bait = "create temp table payment (id text, state text, created_at timestamptz)";
    const trap =
      "create trigger t after insert on pg_temp.payment referencing new table as added for each statement execute function public.record_insert_events()";
    expect(await attempt(client, `${bait}; ${trap}`)).toBe(REFUSED);
  });
});

test("every function that Postgres parses when it runs names the schemas in which it searches", async () => {
  // Every role may create temporary tables, and Postgres searches those first.
  const lacking = await execute(
    url,
    `select p.oid::regprocedure::text as name from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.prosqlbody is null
      and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
      and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, public, pg_temp'] order by 1`,
  );
  expect(lacking).toEqual([]);
});

test("neither the api nor readers can read what would move money: signatures, permits and signed bytes", async () => {
  for (const role of ["api", "reader"] as const) {
    const client = await connectAs(role);
    for (const statement of [
      "select signature from transfer",
      "select permit from transfer",
      "select bytes from transaction",
      "select signature from signed_statement",
    ])
      expect([role, statement, await attempt(client, statement)]).toEqual([role, statement, REFUSED]);
    expect(await attempt(client, "select count(*) from transfer")).toBeUndefined();
  }
});

test("the api can change neither settlements, balances, the ledger nor the audit log", () => {
  for (const table of ["settlement", "merchant_balance", "ledger_group", "ledger_entry", "ledger_day"] as const)
    expect(grants[table].api).toEqual({ select: "all" });
  expect(memberNames(grants.audit_entry.api ?? {})).toEqual(["insert"]);
});

/** Returns the migrations of the next release, which adds nothing. */
async function migrationsOfNext(): Promise<Migrations> {
  const name = `${String(highestVersion(migrationNames) + 1).padStart(4, "0")}_next`;
  return { ...(await readMigrations()), [name]: { up: async () => undefined } };
}

test("a migration takes away what the grants do not name", async () => {
  const own = await createDatabase();
  await execute(own, "grant update on ledger_entry to pay_api", "grant select (password_hash) on operator to public");
  await migrateDatabase(own, { migrations: await migrationsOfNext() });
  const client = await connectAs("api", own);
  expect(await attempt(client, "update ledger_entry set amount = 1")).toBe(REFUSED);
  expect(await attempt(client, "select password_hash from operator")).toBe(REFUSED);
});

test("a call that was interrupted after a migration leaves the revocations to the next call", async () => {
  const own = await createDatabase();
  await execute(own, "grant update on ledger_entry to pay_api");
  const next = await migrationsOfNext();
  const [last = ""] = Object.keys(next).sort().reverse();
  const interrupted = { ...next, [last]: { up: async () => undefined, concurrentIndexes: { never: "no index" } } };
  await expect(migrateDatabase(own, { migrations: interrupted as unknown as Migrations })).rejects.toThrow();
  expect(await migrateDatabase(own, { migrations: next })).toEqual([]);
  const client = await connectAs("api", own);
  expect(await attempt(client, "update ledger_entry set amount = 1")).toBe(REFUSED);
});

test("without a migration, `migrate` gives each role what is missing, and takes nothing from the roles of another release", async () => {
  const own = await createDatabase();
  await execute(
    own,
    "grant update (name) on merchant to pay_reader",
    "grant execute on function lock_logins() to pay_reader",
    "revoke select on merchant from pay_api",
    "grant select (password_hash) on operator to public",
    "grant execute on function lock_logins() to public",
  );
  expect(await migrateDatabase(own)).toEqual([]);
  const [reader, api] = [await connectAs("reader", own), await connectAs("api", own)];
  expect(await attempt(reader, "update merchant set name = ''")).toBeUndefined();
  expect(await attempt(reader, "select lock_logins()")).toBeUndefined();
  expect(await attempt(api, "select id from merchant")).toBeUndefined();
  expect(await attempt(api, "select password_hash from operator")).toBe(REFUSED);
  expect(await attempt(api, "select lock_logins()")).toBe(REFUSED);
});
