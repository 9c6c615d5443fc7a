import { type Kysely, sql } from "kysely";

/** Deleted merchants that are still owed money, who may cancel a payment, and whose a buyer's data is. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // A deleted merchant is paid out below its minimum: what waited for it goes on.
  `create trigger merchant_deleted_wakes after update of deleted_at on merchant for each row
    when (old.deleted_at is distinct from new.deleted_at) execute function wake_merchant()`,

  // Whether wallets and checkout pages may cancel the account's payments.
  "alter table account add column wallets_cancel boolean not null default true",
  // The first to request a payment's options, and whether another one has: two are all that matters.
  `alter table payment add column requester text,
    add column shared boolean not null default false,
    add check (requester is not null or not shared)`,

  // What a buyer said: posted ahead of a confirm by one requester of options (attempt_id null), or part of an attempt.
  // A push proves nobody, because everyone can read its hash: there the data of each requester is kept apart.
  "drop table collected_data",
  `create table collected_data (
    id text primary key,
    payment_id text not null references payment,
    account text not null,
    requester text not null,
    attempt_id text references attempt on delete cascade,
    key_id text not null,
    sealed bytea not null,
    created_at timestamptz not null,
    delete_at timestamptz not null,
    keep_until timestamptz not null check (keep_until >= delete_at)
  )`,
  `create unique index collected_data_posted on collected_data (payment_id, account, requester)
    where attempt_id is null`,
  `create unique index collected_data_attempt on collected_data (attempt_id, requester) where attempt_id is not null`,
  "create index collected_data_payment on collected_data (payment_id)",
  "create index collected_data_delete on collected_data (delete_at)",
];
