import { type Kysely, sql } from "kysely";

/** Which assets a watcher has read: one that the networks file did not have for a while is read again when it is back. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // The assets of which everything up to the cursor has been read.
  "alter table chain_cursor add column assets text[] not null default '{}'",

  // An asset that is in the final blocks up to a height only; it is read on up to another one once it is configured again.
  `create table unread_asset (
    chain text not null references chain_cursor,
    asset text not null,
    number bigint not null,
    until bigint,
    since timestamptz not null,
    primary key (chain, asset)
  )`,
];
