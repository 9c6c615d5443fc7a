import { type Kysely, sql } from "kysely";

/** What transfers on Solana need. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const kinds = "kind in ('eip3009', 'permit2', 'push', 'spl')";

const statements = [
  "alter table payment_option drop constraint payment_option_kind_check",
  `alter table payment_option add constraint payment_option_kind_check check (${kinds})`,
  "alter table transfer drop constraint transfer_kind_check",
  `alter table transfer add constraint transfer_kind_check check (${kinds})`,

  // When bytes die
  `alter table transaction
    add column last_valid_height bigint,
    add column nonce_account text,
    add column nonce_value text,
    add column nonce_slot bigint`,
  // A durable nonce is in one transaction at a time
  `create unique index transaction_nonce_account on transaction (chain, nonce_account)
    where nonce_account is not null and state in ('signed', 'offered', 'accepted', 'included')`,

  // A slot holds many transactions, and its statuses name no block hash
  "alter table sighting drop constraint sighting_pkey",
  "alter table sighting add primary key (chain, block_hash, tx_hash, log_index)",

  // How far the history of an account has been read
  `create table account_cursor (
    chain text not null,
    account text not null,
    signature text,
    primary key (chain, account)
  )`,
  // Accounts that we have paid the rent of
  `create table made_account (
    chain text not null,
    address text not null,
    tx_hash text not null,
    made_at timestamptz not null,
    primary key (chain, address)
  )`,
];
