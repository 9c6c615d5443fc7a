import { type Kysely, sql } from "kysely";

/** Bounded work: webhook events of payouts in parts, and payouts that wait without jobs. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // A payout that has arrived owes its endpoint an event for each of its payments. The transaction that confirms it
  // writes one row here; the events follow in parts (payments/settled-events.ts).
  `create table webhook_fanout (
    settlement_id text not null references settlement,
    endpoint_id text not null references webhook_endpoint,
    at timestamptz not null,
    after_payment text not null default '',
    primary key (settlement_id, endpoint_id)
  )`,
  "create index webhook_fanout_endpoint on webhook_fanout (endpoint_id, at, settlement_id)",
  "drop trigger settlement_paid_webhook on settlement",
  "drop function owe_settled_webhook",
  `create function add_webhook_fanout() returns trigger language plpgsql as $$
  begin
    insert into webhook_fanout (settlement_id, endpoint_id, at)
    select new.id, e.id, new.paid_at from merchant m
    join webhook_endpoint e on e.account_id = m.account_id and e.mode = new.mode and e.deleted_at is null
    where m.id = new.merchant_id;
    return null;
  end $$`,
  `create trigger settlement_paid_webhook after update of state on settlement
    for each row when (old.state <> 'paid' and new.state = 'paid') execute function add_webhook_fanout()`,
  "drop index payment_settlement",
  "create index payment_settlement on payment (settlement_id, id) where settlement_id is not null",
];
