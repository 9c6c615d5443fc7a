import { sql } from "kysely";
import { expect, test } from "vitest";
import { type OurMigration, readMigrations } from "../../../db/migrate.ts";
import { parseMigrations } from "../../../scripts/check-migrations.ts";
import { findMigrationErrors } from "../../../scripts/migration-rules.ts";
import * as checkSource from "../../support/next-release/check-source.ts";
import * as paymentSource from "../../support/next-release/payment-source.ts";
import * as requireSource from "../../support/next-release/require-source.ts";

type Declared = Omit<OurMigration, "up">;

/** Returns a migration with these statements. */
function write(texts: readonly string[], declared: Declared = {}): OurMigration {
  const up: OurMigration["up"] = async (db) => {
    for (const text of texts) await sql.raw(text).execute(db);
  };
  return { up, ...declared };
}

/** Returns what is wrong with a migration of version 3, after the first version and an expanding one. */
async function check(texts: readonly string[], declared: Declared = {}): Promise<string[]> {
  const migrations = {
    "0001_initial": write(["create table payment (id text primary key, note text)", "drop table elsewhere"]),
    "0002_expand": write(["alter table payment add column text text"]),
    "0003_tested": write(texts, declared),
  };
  const errors = findMigrationErrors(await parseMigrations(migrations));
  return errors.map((error) => error.replace("0003_tested ", ""));
}

test("the migrations of this repository keep the rules, and so do those that the upgrade test adds", async () => {
  const next = {
    "0002_payment_source": paymentSource,
    "0003_check_source": checkSource,
    "0003_require_source": { ...requireSource, contracts: "0002_payment_source" },
  };
  const { "0001_initial": initial = write([]) } = await readMigrations();
  expect(findMigrationErrors(await parseMigrations(await readMigrations()))).toEqual([]);
  expect(findMigrationErrors(await parseMigrations({ "0001_initial": initial, ...next }))).toEqual([]);
});

test.each([
  ["a nullable column", "alter table payment add column memo text"],
  ["a column with a constant default", "alter table payment add column tries integer not null default 0"],
  [
    "a column with the time of the migration",
    "alter table payment add column seen_at timestamptz not null default now()",
  ],
  ["a table", "create table memo (id text primary key, payment_id text not null references payment)"],
  ["an index on a new table", "create table memo (id text primary key); create index memo_id on memo (id)"],
  ["a reference that follows deletions", "create table memo (id text references collected_data on delete cascade)"],
  ["a function and a trigger", "create or replace trigger t after insert on payment for each row execute function f()"],
  ["a default for a column", "alter table payment alter column note set default ''"],
  ["settings of a table", "alter table payment set (fillfactor = 90)"],
  ["the validation of an earlier constraint", "alter table payment validate constraint payment_note"],
  [
    "what the same release adds, and changes",
    "create table memo (id text); alter table memo add unique (id); drop table memo",
  ],
  [
    "a column that the same release removes",
    "alter table payment add column a text; alter table payment drop column a",
  ],
  ["rows", "insert into merchant select id, now() from payment on conflict do nothing"],
  ["rows of a new table", "create table memo (id text); update memo set id = ''; delete from memo"],
  [
    "a column of a new enum type",
    "create type t as enum ('a'); alter table payment add column a t not null default 'a'",
  ],
])("a migration may add %s", async (_what, text) => {
  expect(await check([text])).toEqual([]);
});

test.each([
  ["drops the table payment", "drop table payment"],
  ["drops the column payment.note", "alter table payment drop column note"],
  ["drops the trigger payment.t", "drop trigger t on payment"],
  ["drops the function f", "drop function f(text)"],
  ["drops the index payment_note", "drop index payment_note"],
  ["drops the constraint payment_note_check of payment", "alter table payment drop constraint payment_note_check"],
  ["drops the constraint c of payment", "alter table payment drop constraint c, add column a text constraint c null"],
  ["makes payment.id nullable", "alter table payment alter column id drop not null"],
  ["drops the default of payment.note", "alter table payment alter column note drop default"],
  ["drops the default of payment.note", "alter table payment alter column note set default null"],
  ["drops the default of payment.note", "alter table payment alter column note set default null::text"],
  ["drops the column payment.note", "alter table payment drop column note, add column note text"],
  ["drops the column payment.note", "alter table payment drop column note; alter table payment add column note text"],
  ["drops the table payment", "drop table payment; create table payment (id text)"],
  ["drops the table public.memo", "create table memo (id text); drop table public.memo"],
  [
    "drops the trigger payment.t",
    "create trigger t after insert on merchant execute function f(); drop trigger t on payment",
  ],
  ["drops the function f", "create function f() returns int return 1; drop function f(text)"],
])("a migration that %s has to declare which release stopped using it", async (problem, text) => {
  expect(await check([text])).toEqual([expect.stringMatching(`^${problem}.*does not declare`)]);
  expect(await check([text], { contracts: "0002_expand" })).toEqual([]);
});

test.each([
  ["renames", "alter table payment rename column note to memo"],
  ["renames", "alter table payment rename to sale"],
  ["renames", "alter index payment_note rename to other"],
  ["renames the value open", "alter type state rename value 'open' to 'new'"],
  ["changes the type of payment.note", "alter table payment alter column note type jsonb using note::jsonb"],
  ["NOT NULL without a default", "alter table payment add column memo text not null"],
  ["NOT NULL without a default", "alter table payment add column memo text not null default null"],
  ["reads every row", "alter table payment alter column note set not null"],
  ["reads every row", "alter table payment add column a text; alter table payment alter column a set not null"],
  ["changes the type", "alter table payment add column a text; alter table payment alter column a type jsonb"],
  ["no base type", "create domain pos as int check (value > 0); alter table payment add column x pos default 1"],
  ["no base type", "alter table payment add column memo other.text"],
  ["foreign key with a default", "alter table payment add column z text default 'a' references other (id)"],
  ["has a SELECT", "with g as (delete from payment returning 1) select count(*) from g"],
  ["has a SELECT", "with g as (update payment set note = '' returning 1) select count(*) from g"],
  ["has a SELECT", "select * from payment for update"],
  ["has a SELECT", "create function f() returns void language sql as 'delete from payment'; select f()"],
  ["locks rows", "insert into merchant select id from payment for update"],
  ["IF NOT EXISTS", "create table if not exists payment (id text); drop table payment"],
  ["IF NOT EXISTS", "alter table payment add column if not exists note text; alter table payment drop column note"],
  ["temporary", "create temporary table payment (id text); alter table public.payment drop column note"],
  ["a part of another table", "create table memo () inherits (payment)"],
  ["VariableSetStmt", "set search_path to other; create table payment (id text); set search_path to public"],
  ["rewrites the table", "alter table payment add column memo uuid default gen_random_uuid()"],
  ["rewrites the table", "alter table payment add column memo text generated always as (note || note) stored"],
  ["no base type", "alter table payment add column memo bigserial"],
  ["reads every row", "alter table payment add column memo text check (memo <> '')"],
  ["reads every row", "alter table payment add constraint c check (note <> '')"],
  ["builds an index", "alter table payment add column memo text unique"],
  ["builds an index", "alter table payment add constraint c unique (note)"],
  ["concurrentIndexes", "create index payment_note on payment (note)"],
  ["concurrentIndexes", "create unique index concurrently payment_note on payment (note)"],
  ["DO block", "do $$ begin execute 'drop table payment'; end $$"],
  ["does not know (TruncateStmt)", "truncate payment"],
  ["does not know (LockStmt)", "lock table payment"],
  ["does not know (ClusterStmt)", "cluster payment using payment_pkey"],
  ["does not know (AT_SetTableSpace)", "alter table payment set tablespace other"],
  ["db/grants/", "revoke select on payment from pay_api"],
])("nothing allows a migration that %s: %s", async (problem, text) => {
  const declared = { contracts: "0002_expand" };
  expect(await check([text], declared)).toContainEqual(expect.stringContaining(problem));
});

test.each([
  ["payment_note_check", "alter table payment add constraint payment_note_check check (note <> '') not valid"],
  [
    "payment_note_check",
    "alter table payment drop constraint payment_note_check, add constraint payment_note_check check (note in ('a', 'b')) not valid",
  ],
  ["collected_data", "alter table payment add column data_id text references collected_data"],
  ["collected_data", "create table memo (id text, data_id text, foreign key (data_id) references collected_data (id))"],
  ["state", "alter type state add value 'held'"],
  ["merchant", "update merchant set name = ''"],
  ["merchant", "delete from merchant"],
  ["merchant", "merge into merchant using payment on true when matched then delete"],
  ["merchant", "insert into merchant values ('a') on conflict (id) do update set name = ''"],
  ["merchant", "with g as (delete from merchant returning id) insert into payment select id from g"],
  ["merchant", "create table memo (id text); with g as (delete from merchant returning id) update memo set id = ''"],
  ["f", "insert into payment select f(note)"],
  ["now", "insert into payment values (now('a'))"],
  ["collected_data", "create table memo (id text); alter table memo add foreign key (id) references collected_data"],
  ["collected_data", "create table memo (id text); alter table memo add column data_id text references collected_data"],
])("a migration has to explain %s: %s", async (name, text) => {
  expect(await check([text])).toEqual([expect.stringContaining(`does not explain ${name}`)]);
  expect(await check([text], { documented: { [name]: "The former release only reads it." } })).toEqual([]);
});

test("a constraint is not validated by the release that adds it", async () => {
  const add = "alter table payment add constraint c check (note <> '') not valid";
  const errors = await check([add, "alter table payment validate constraint c"], {
    documented: { c: "No empty notes." },
  });
  expect(errors).toEqual([expect.stringContaining("validates c in the release that adds it")]);
});

test("a column becomes NOT NULL after earlier migrations have added and validated its check", async () => {
  const add = "alter table payment add constraint note_present check (note is not null) not valid";
  const validate = "alter table payment validate constraint note_present";
  const required = "alter table payment alter column note set not null";
  const review = async (validated: readonly string[], texts: readonly string[], contracts?: string) => {
    const migrations = await parseMigrations({
      "0001_initial": write(["create table payment (id text primary key, note text)"]),
      "0002_add": write([add], { documented: { note_present: "It writes a note with every payment." } }),
      "0003_check": write(validated),
      "0003_require": write(texts, contracts === undefined ? {} : { contracts }),
    });
    return findMigrationErrors(migrations);
  };
  expect(await review([validate], [required], "0002_add")).toEqual([]);
  expect(await review([validate], [required])).toEqual([expect.stringContaining("does not declare")]);
  const drop = `${required.replace("alter column", "drop constraint note_present, alter column")}`;
  for (const [validated, texts] of [
    [[], [required]],
    [[], [validate, required]],
    [[validate], [drop]],
  ] as const)
    expect(await review(validated, texts, "0002_add")).toContainEqual(expect.stringContaining("reads every row"));
});

test("a declaration names a migration of an earlier release, and allows something", async () => {
  const drop = ["alter table payment drop column note"];
  expect(await check(drop, { contracts: "0002_gone" })).toEqual([expect.stringContaining("is no migration")]);
  expect(await check(drop, { contracts: "0003_tested" })).toEqual([
    expect.stringContaining("not of an earlier release"),
  ]);
  expect(await check([], { contracts: "0002_expand" })).toEqual(["declares `contracts` and removes nothing"]);
  expect(await check([], { documented: { merchant: "Small." } })).toEqual([
    expect.stringContaining("needs no explanation"),
  ]);
});

test("versions follow each other without a gap", async () => {
  const migrations = await parseMigrations({ "0001_initial": write([]), "0003_later": write([]) });
  expect(findMigrationErrors(migrations)).toEqual([expect.stringContaining("version 3 does not follow another one")]);
});

test("a mistake in the definition of a concurrent index is found", async () => {
  const migrations = { "0001_initial": write([], { concurrentIndexes: { payment_note: "payment (note)" } }) };
  await expect(parseMigrations(migrations)).rejects.toThrow("syntax error");
});
