import { type Kysely, sql } from "kysely";

/** What further kinds of transfers, payers and payouts need. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // How a transfer is made, and what its buyer still has to allow for it
  `alter table payment_option
    add column kind text not null default 'eip3009' check (kind in ('eip3009', 'permit2', 'push')),
    add column allowance jsonb`,
  `alter table transfer
    add column kind text not null default 'eip3009' check (kind in ('eip3009', 'permit2', 'push')),
    add column permit bytea,
    add column smart_wallet boolean not null default false,
    alter column signature drop not null`,
  // Payouts that gather what several payments owe
  `alter table settlement_destination
    add column gather_ms integer check (gather_ms > 0),
    add column gather_amount numeric(78,0) check (gather_amount > 0),
    add check (gather_amount is null or gather_ms is not null)`,
  "create index settlement_paying on settlement (created_at) where state = 'paying'",
  "create unique index settlement_gathering on settlement (merchant_id, asset) where state = 'gathering'",

  // Money that nobody asked for, until it is in the books
  "alter table sighting add column booked boolean not null default false",
  `create index sighting_stray on sighting (chain, block_number)
    where transfer_id is null and not orphaned and not booked`,
  "create index payment_option_authorization on payment_option (authorization_nonce)",
];
