import { type Insertable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";
import type { OperatorRow } from "./operators.ts";

/**
 * Inserts a session, whose end Postgres sets, and deletes sessions that have expired. A trigger appends to the audit log that the
 * operator has signed in.
 */
export async function insertSession(
  db: Db,
  { now, ...row }: Omit<Insertable<Tables["operator_session"]>, "created_at" | "expires_at"> & { now: Date },
): Promise<void> {
  await db.deleteFrom("operator_session").where("expires_at", "<=", now).execute();
  await db.insertInto("operator_session").values(row).execute();
}

/** Returns the operator of a session that has not expired; undefined for a disabled operator too. */
export async function findSessionOperator(
  db: Db,
  { tokenHash, now }: { tokenHash: Buffer; now: Date },
): Promise<Pick<OperatorRow, "name" | "role"> | undefined> {
  return db
    .selectFrom("operator_session as s")
    .innerJoin("operator as o", "o.name", "s.operator")
    .select(["o.name", "o.role"])
    .where("s.token_hash", "=", tokenHash)
    .where("s.expires_at", ">", now)
    .where("o.disabled_at", "is", null)
    .executeTakeFirst();
}

/**
 * Appends to the audit log that the operator of a session runs failed jobs of a queue again: one job, or several when `job` is
 * null. Rejects when no operator who may do so has the session.
 */
export async function recordRetriedJobs(
  db: Db,
  { tokenHash, queue, job, jobs }: { tokenHash: Buffer; queue: string; job: string | null; jobs: number },
): Promise<void> {
  await sql`select record_retried_jobs(${tokenHash}, ${queue}, ${job}, ${jobs})`.execute(db);
}

/** Deletes a session. */
export async function deleteSession(db: Db, tokenHash: Buffer): Promise<void> {
  await db.deleteFrom("operator_session").where("token_hash", "=", tokenHash).execute();
}

/** Serializes logins until the commit, so that concurrent ones cannot exceed a limit together. */
export async function lockLogins(db: Db): Promise<void> {
  await sql`select lock_logins()`.execute(db);
}

/**
 * Returns when the login attempt was made with which the newest `limit` attempts since `since` of one operator or address
 * begin; null when there are fewer.
 */
export async function findOldestOf(
  db: Db,
  args: { by: "operator" | "address"; value: string; since: Date; limit: number },
): Promise<Date | null> {
  const row = await db
    .selectFrom("operator_login_attempt")
    .select("at")
    .where(args.by, "=", args.value)
    .where("at", ">", args.since)
    .orderBy("at", "desc")
    .offset(args.limit - 1)
    .limit(1)
    .executeTakeFirst();
  return row?.at ?? null;
}

/** Inserts a login attempt, and deletes those that were made before `since`. */
export async function insertLoginAttempt(
  db: Db,
  { since, ...row }: Omit<Insertable<Tables["operator_login_attempt"]>, "id"> & { since: Date },
): Promise<void> {
  await db.deleteFrom("operator_login_attempt").where("at", "<=", since).execute();
  await db.insertInto("operator_login_attempt").values(row).execute();
}

/** Deletes an operator's login attempts. */
export async function deleteLoginAttempts(db: Db, operator: string): Promise<void> {
  await db.deleteFrom("operator_login_attempt").where("operator", "=", operator).execute();
}
