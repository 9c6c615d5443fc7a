import { type Kysely, sql } from "kysely";

/** What the buyers' pages need. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  // Origins that may frame the data page of an account's payments. They become part of a header, hence the form.
  `create table frame_origin (
    account_id text not null references account,
    origin text not null check (
      length(origin) <= 255 and origin ~ '^(https://[a-z0-9]([-a-z0-9.]*[a-z0-9])?|http://localhost)(:[0-9]{1,5})?$'
    ),
    created_at timestamptz not null,
    primary key (account_id, origin)
  )`,
];
