import { type Kysely, sql } from "kysely";

/** Bounds on what a stranger may cost: attempts by how they are verified, and gas that moved no money. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // Who can say whether the confirm is the payer's: its key, its code (a contract wallet), or a transaction it has sent.
  `alter table attempt add column verification text not null default 'key'
    check (verification in ('key', 'wallet', 'push'))`,
  "create index attempt_refused on attempt (created_at) where state = 'refused'",

  // What the code at a contract wallet hashes to; gas limits count by it.
  "alter table transfer add column code_hash text",
  // What a payer has promised and not paid yet.
  "create index transfer_promised on transfer (chain, payer) where state in ('ready', 'carried')",

  // A transaction that was included and moved no money for this transfer. `alone`: it carried nothing else.
  `create table burned_gas (
    transfer_id text not null references transfer,
    lane_id text not null references lane,
    nonce bigint not null,
    chain text not null,
    payer text not null,
    code_hash text,
    gas numeric(78,0) not null check (gas >= 0),
    alone boolean not null,
    block_number bigint not null,
    at timestamptz not null,
    primary key (transfer_id, lane_id, nonce)
  )`,
  "create index burned_gas_recent on burned_gas (chain, at)",
];
