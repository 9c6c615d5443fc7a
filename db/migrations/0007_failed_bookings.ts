import { type Kysely, sql } from "kysely";

/** Rows that could not be booked, and small unmatched deposits that are booked together. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // What stands here is left out by the watcher until `retry_at`, so that it stops nothing else.
  `create table failed_booking (
    id bigint generated always as identity primary key,
    chain text not null,
    kind text not null check (kind in ('movement', 'unmatched', 'dust', 'transfer', 'ended', 'transaction')),
    subject text not null,
    block_number bigint,
    movement jsonb,
    error text not null,
    retries integer not null default 0,
    first_at timestamptz not null,
    last_at timestamptz not null,
    retry_at timestamptz not null,
    unique (chain, kind, subject),
    check ((kind = 'movement') = (movement is not null and block_number is not null))
  )`,

  // Unmatched deposits below an asset's dust amount: one row per asset and day, and one exception when the day is over
  `create table dust (
    id bigint generated always as identity primary key,
    chain text not null,
    asset text not null,
    day date not null,
    amount numeric(78,0) not null check (amount > 0),
    transfers integer not null,
    last_block bigint not null,
    group_id bigint references ledger_group,
    unique (chain, asset, day)
  )`,
  "create index dust_open on dust (chain, day) where group_id is null",
  "alter table sighting add column dust_id bigint references dust",
  "create index sighting_dust on sighting (dust_id) where dust_id is not null",
  "drop index ledger_group_exception",
  "create index ledger_group_exception on ledger_group (id) where kind in ('stray', 'exception', 'dust')",
];
