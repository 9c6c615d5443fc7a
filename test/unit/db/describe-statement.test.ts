import { expect, test } from "vitest";
import { describeStatement } from "../../../db/describe-statement.ts";

test.each([
  ['select "id" from "payment" where "id" = $1', "select payment"],
  ["select 1", "select"],
  ["begin", "begin"],
  ["insert into attempt (id) values ($1) on conflict (id) do update set due_at = $2", "insert attempt"],
  ['update "transfer" set "state" = $1', "update transfer"],
  [
    "with moved as (update payment set state = $1 returning id) insert into event select id from moved",
    "update payment",
  ],
  ["with a as (select id from transfer where id = $1 for update) select id from a", "select transfer"],
  ["select id from payment for no key update of payment", "select payment"],
  ['delete from "idempotency_key" where at < $1', "delete idempotency_key"],
])("%s is named by what it writes, or reads", (text, name) => {
  expect(describeStatement(text)).toMatchObject({ name, attributes: { "db.query.text": text } });
});
