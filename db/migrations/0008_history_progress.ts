import { type Kysely, sql } from "kysely";

/** The history of an account is listed first and read afterwards, in parts. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // `signature` is the newest of the last listing that was completed; `listing` is one under way
  `alter table account_cursor
    add column slot bigint,
    add column listed_at timestamptz,
    add column listed_slot bigint,
    add column listing jsonb,
    add column read_at timestamptz,
    add column read_slot bigint,
    add column named_slot bigint,
    add column owner text,
    add column lease_until timestamptz`,
  // What was listed and is not read yet; deleted in the transaction that records what it moved
  `create table history_entry (
    chain text not null,
    account text not null,
    signature text not null,
    slot bigint not null,
    -- The listing before the one that found it: up to then everything is known without it
    listed_after timestamptz,
    urgent boolean not null,
    tries integer not null default 0,
    due_at timestamptz not null,
    last_error text,
    primary key (chain, account, signature),
    foreign key (chain, account) references account_cursor
  )`,
  "create index history_entry_next on history_entry (chain, account, urgent desc, slot, signature)",
];
