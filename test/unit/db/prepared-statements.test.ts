import { expect, test } from "vitest";
import { createStatementNames } from "../../../db/prepared-statements.ts";

/** Runs a statement several times, and returns its name at the last run. */
const runOften = (nameOf: ReturnType<typeof createStatementNames>, text: string, parameters: unknown[] = [1]) =>
  Array.from({ length: 10 }, () => nameOf(text, parameters)).at(-1);

test("a statement that runs often gets one name, and each other statement another one", () => {
  const nameOf = createStatementNames();
  expect(nameOf("select id from payment where id = $1", ["a"])).toBeUndefined();
  const name = runOften(nameOf, "select id from payment where id = $1");
  expect(name).toBeDefined();
  expect(nameOf("select id from payment where id = $1", ["b"])).toBe(name);
  expect(runOften(nameOf, "select id from attempt where id = $1")).not.toBe(name);
});

test("a name stands for one text in every process, so that a pooler that mixes up sessions runs no other statement", () => {
  const [one, other] = [createStatementNames(), createStatementNames()];
  const first = runOften(one, "select 1 where $1");
  expect(runOften(other, "select 2 where $1")).not.toBe(first);
  expect(runOften(other, "select 1 where $1")).toBe(first);
});

test.each([
  'select * from "payment" where "id" = $1',
  'select "p".*, "m"."name" from "payment" as "p" where "p"."id" = $1',
  "select o.id, p.* from payment p where id = $1",
  "select distinct p.* from payment p where id = $1",
  "select distinct on (o.payment_id, lower(o.payer)) o.* from payment_option o where payer = $1",
  'select distinct on ("payer") * from payment_option where id = $1',
  "update transfer set lane_id = $1 returning *",
])("a statement that returns all columns is not prepared, because a migration may add one: %s", (text) => {
  expect(runOften(createStatementNames(), text)).toBeUndefined();
});

test("a count and a product are no reason not to prepare a statement", () => {
  const nameOf = createStatementNames();
  expect(runOften(nameOf, "select count(*) from payment where id = $1")).toBeDefined();
  expect(runOften(nameOf, "select distinct on (a) a, b * c from payment where id = $1")).toBeDefined();
  expect(runOften(nameOf, "select a * b from payment where id = $1")).toBeDefined();
});

test("a statement that takes its rows as a parameter is prepared: they keep their columns", () => {
  const nameOf = createStatementNames();
  for (const rows of [
    "unnest($1::text[])",
    "json_to_recordset($1::json) as n (id text)",
    "jsonb_to_recordset($1::jsonb)",
  ])
    expect(
      runOften(nameOf, `with n as (select * from ${rows}) insert into payment (id) select id from n`),
    ).toBeDefined();
});

test("a statement without parameters is not prepared", () => {
  expect(runOften(createStatementNames(), "begin", [])).toBeUndefined();
});

test("texts that never repeat get no names, and the names that are given stay", () => {
  const nameOf = createStatementNames();
  const name = runOften(nameOf, "select id where $1");
  for (let index = 0; index < 10_000; index += 1) expect(nameOf(`select ${index} where $1`, [1])).toBeUndefined();
  expect(nameOf("select id where $1", [1])).toBe(name);
});
