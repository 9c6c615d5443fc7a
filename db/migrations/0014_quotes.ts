import { type Kysely, sql } from "kysely";

/** One row for each quote, which never changes; and what refunds have taken of payments before their payouts began. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // A quote is renewed by another row, under the next number of its payment, payer and asset.
  `alter table payment_option
    add column number integer not null default 1 check (number > 0),
    drop constraint payment_option_payment_id_payer_asset_key,
    add unique (payment_id, payer, asset, number)`,
  // When a quote ends stands in quoted_until. What is left is until when a transaction that was built for it can land.
  "alter table payment_option rename column expires_at to blockhash_until",
  "update payment_option set blockhash_until = null where kind <> 'spl'",
  `create function keep_quote() returns trigger language plpgsql as $$
  begin
    if to_jsonb(new) - 'blockhash_until' is distinct from to_jsonb(old) - 'blockhash_until' then
      raise exception 'a quote never changes: %', old.id;
    end if;
    return new;
  end $$`,
  "create trigger payment_option_quote before update on payment_option for each row execute function keep_quote()",
  // An attempt and its payment name the quote that was signed, which is one of the same payment. These references are
  // checked by payment when a quote is deleted, and need no index of their own.
  "alter table payment_option add unique (payment_id, id)",
  `alter table attempt
    drop constraint attempt_option_id_fkey,
    add foreign key (payment_id, option_id) references payment_option (payment_id, id)`,
  `alter table payment
    drop constraint payment_option_id_fkey,
    add foreign key (id, option_id) references payment_option (payment_id, id)`,

  // So much less arrives for a payment: a refund took it out of the payment's settlement before that began.
  `create table settlement_deduction (
    refund_id text not null references refund,
    settlement_id text not null references settlement,
    payment_id text not null references payment,
    amount numeric(78,0) not null check (amount > 0),
    primary key (refund_id, settlement_id, payment_id)
  )`,
  "create index settlement_deduction_payment on settlement_deduction (payment_id)",
];

/** Renewed quotes, which are deleted when they can matter no more. */
export const concurrentIndexes = {
  payment_option_renewal: "on payment_option (created_at) where number > 1",
};
