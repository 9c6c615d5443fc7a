import { type Kysely, sql } from "kysely";

/** Payouts on Solana that the chain refuses a second time, and how a step back of the database is noticed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // Accounts on Solana that refuse a second payout, until their rent is taken back
  `create table payout_marker (
    chain text not null,
    address text not null,
    tx_hash text not null,
    lamports numeric(78, 0) not null check (lamports > 0),
    made_at timestamptz not null,
    closing_hash text,
    primary key (chain, address)
  )`,
  "create index payout_marker_made_at on payout_marker (chain, made_at)",

  // What the server says of itself, as far as its owner may ask: system, timeline, table. It changes with every promotion
  // of a replica and every restore of a dump, and is the same for every role.
  `create function database_identity(epoch_table oid) returns text
  language plpgsql security definer set search_path = pg_catalog as $$
  declare
    system text := '-';
    timeline text := '-';
  begin
    begin
      system := (select system_identifier::text from pg_control_system());
    exception when insufficient_privilege or undefined_function or feature_not_supported then null;
    end;
    begin
      timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    exception when insufficient_privilege or undefined_function or feature_not_supported then null;
    end;
    return concat_ws('/', system, timeline, epoch_table);
  end $$`,
  // One row. The count only ever grows, so a smaller one than was seen before is from an earlier time.
  `create table database_epoch (
    singleton boolean primary key default true check (singleton),
    id text not null,
    count bigint not null,
    counted_at timestamptz not null,
    identity text not null,
    began_at timestamptz
  )`,
  `insert into database_epoch (id, count, counted_at, identity)
    values (gen_random_uuid()::text, 0, now(), database_identity('database_epoch'::regclass))`,

  // The epoch in which a chain was read again, and up to which height it still has to be
  "alter table chain_cursor add column epoch text, add column epoch_height bigint",
  "update chain_cursor set epoch = (select id from database_epoch)",
];
