import { Migrator } from "kysely/migration";
import { expect, test } from "vitest";
import { migrate } from "../../../db/migrate.ts";
import * as first from "../../../db/migrations/0001_first_payment.ts";
import { openDb } from "../../../db/open.ts";
import { atEnd } from "../../support/at-end.ts";
import { createEmptyDatabase } from "../../support/database.ts";
import { execute } from "../../support/sql.ts";

test("a database of the first release, with payments in it, is brought to this one", async () => {
  const url = await createEmptyDatabase();
  const db = openDb(url, { max: 2 });
  atEnd(() => db.destroy());
  const provider = { getMigrations: async () => ({ "0001_first_payment": first }) };
  const { error } = await new Migrator({ db, provider }).migrateToLatest();
  expect(error).toBeUndefined();
  await execute(
    url,
    "insert into transition values ('payment', 'new', 'requires_action'), ('payment', 'requires_action', 'processing'), ('attempt', 'new', 'waiting')",
    "insert into account values ('acct_1', 'Shop', now())",
    "insert into merchant values ('mrch_1', 'acct_1', 'live', 'Shop', 'shop@example.test', 'active', null, now(), null)",
    `insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, expires_at)
      select id, 'acct_1', 'mrch_1', 'live', 'iso4217/USD', 100, 'requires_action', '2026-01-01', '2026-01-02'
      from unnest(array['pay_1', 'pay_2']) id`,
    "insert into event (machine, subject, from_state, to_state, at) values ('payment', 'pay_2', 'requires_action', 'processing', '2026-01-03')",
    `insert into payment_option (id, payment_id, account, chain, asset, token, payer, receiver, amount, authorization_nonce, valid_before, created_at)
      values ('opt_2', 'pay_2', 'a', 'c', 's', 't', 'p', 'r', 1, 'n', 1, now())`,
    "insert into attempt (id, payment_id, option_id, digest, results, state, created_at) values ('att_2', 'pay_2', 'opt_2', '', '[]', 'waiting', now())",
    "update attempt set state = 'verified'",
  );
  expect(await migrate(db)).toContain("0002_http_contract");
  expect(await execute(url, "select id, updated_at, option_id from payment order by id")).toEqual([
    { id: "pay_1", updated_at: new Date("2026-01-01T00:00:00Z"), option_id: null },
    { id: "pay_2", updated_at: new Date("2026-01-03T00:00:00Z"), option_id: "opt_2" },
  ]);
  expect(await execute(url, "select api_version from account")).toEqual([{ api_version: "2026-02-18" }]);
});
