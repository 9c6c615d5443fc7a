import { type Kysely, sql } from "kysely";

/**
 * Payouts of tokens without EIP-3009 go through the Disburser, and no longer by transactions of the treasury's own; those
 * that a restored database has forgotten are found by their numbers.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // What the former release was pushing is for the former release to finish.
  `do $$ begin
    if exists (select from transfer where purpose <> 'payment' and kind = 'push' and state not in ('confirmed', 'ended')) then
      raise exception 'payouts by transactions of the treasury are unfinished: let the former release finish them first';
    end if;
  end $$`,
  "alter table transfer drop constraint transfer_kind_check",
  "alter table transfer add constraint transfer_kind_check check (kind in ('eip3009', 'permit2', 'disburse', 'push', 'spl'))",
  "drop index ledger_group_exception",
  "create index ledger_group_exception on ledger_group (id) where kind in ('stray', 'exception', 'overpaid', 'dust')",
  // Movements under a number that belong to no transfer: few, and read before every payout.
  `create index sighting_unclaimed on sighting (chain, payer)
    where transfer_id is null and authorization_nonce is not null and not orphaned`,
];
