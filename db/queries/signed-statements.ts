import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";

export type SignedStatementRow = Selectable<Tables["signed_statement"]>;

/** Inserts a signed statement. Keeps one that exists. */
export async function insertSignedStatement(db: Db, row: Insertable<Tables["signed_statement"]>): Promise<void> {
  await db
    .insertInto("signed_statement")
    .values(row)
    .onConflict((conflict) => conflict.columns(["text", "signer"]).doNothing())
    .execute();
}

/** Returns what a stored statement of a signer is about: the id of a change or a refund. */
export async function findStatementSubject(
  db: Db,
  { text, signer }: { text: string; signer: string },
): Promise<string | undefined> {
  const query = db.selectFrom("signed_statement").select("subject").where("text", "=", text);
  return (await query.where("signer", "=", signer).executeTakeFirst())?.subject;
}

/** Returns the statements about these subjects, oldest first. */
export async function listStatementsOf(db: Db, subjects: readonly string[]): Promise<SignedStatementRow[]> {
  if (subjects.length === 0) return [];
  return db.selectFrom("signed_statement").selectAll().where("subject", "in", subjects).orderBy("id").execute();
}

/** Returns statements about changes of destinations that the signer has not answered, oldest first. */
export async function listUnreportedStatements(db: Db, limit: number): Promise<SignedStatementRow[]> {
  return db
    .selectFrom("signed_statement")
    .selectAll()
    .where("reported_at", "is", null)
    .where("subject", "like", "dchg\\_%")
    .orderBy("id")
    .limit(limit)
    .execute();
}

/** Stores what the signer has said about statements. */
export async function recordOutcomes(
  db: Db,
  outcomes: readonly { id: number; outcome: string }[],
  at: Date,
): Promise<void> {
  if (outcomes.length === 0) return;
  await sql`
    update signed_statement s set reported_at = ${at}, outcome = o.outcome
    from unnest(${outcomes.map(({ id }) => id)}::bigint[], ${outcomes.map(({ outcome }) => outcome)}::text[])
      as o (id, outcome) where s.id = o.id`.execute(db);
}
