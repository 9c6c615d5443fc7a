import { type Insertable, type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";
import type { OperatorRow } from "./operators.ts";

export type OperatorRequestRow = Selectable<Tables["operator_request"]>;

/** Inserts a request. Returns false and inserts nothing when there is one with this id. */
export async function insertOperatorRequest(
  db: Db,
  row: Omit<Insertable<Tables["operator_request"]>, "requested_at" | "state" | "outcome" | "ended_at">,
): Promise<boolean> {
  const result = await db
    .insertInto("operator_request")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** Returns a request. */
export async function findOperatorRequest(db: Db, id: string): Promise<OperatorRequestRow | undefined> {
  return db.selectFrom("operator_request").selectAll().where("id", "=", id).executeTakeFirst();
}

/** Returns the newest requests about a subject. */
export async function listOperatorRequests(db: Db, subject: string, limit: number): Promise<OperatorRequestRow[]> {
  return db
    .selectFrom("operator_request")
    .selectAll()
    .where("subject", "=", subject)
    .orderBy("requested_at", "desc")
    .limit(limit)
    .execute();
}

/** Returns the ids of requests that no worker has carried out yet, the oldest first. */
export async function listWaitingRequests(db: Db, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom("operator_request")
    .select("id")
    .where("state", "=", "requested")
    .orderBy("requested_at")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Locks a request that no worker has carried out; undefined when another worker has it, or has carried it out. */
export async function lockWaitingRequest(db: Db, id: string): Promise<OperatorRequestRow | undefined> {
  return db
    .selectFrom("operator_request")
    .selectAll()
    .where("id", "=", id)
    .where("state", "=", "requested")
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
}

/** Stores how a request has ended. Changes nothing when it has ended already. */
export async function endOperatorRequest(
  db: Db,
  { id, ...end }: { id: string; state: "done" | "refused"; outcome: string; ended_at: Date },
): Promise<void> {
  await db.updateTable("operator_request").set(end).where("id", "=", id).where("state", "=", "requested").execute();
}

/** Counts the requests of an operator since a time that workers have carried out. */
export async function countDoneRequests(
  db: Db,
  { operator, since }: { operator: string; since: Date },
): Promise<number> {
  const { count } = await db
    .selectFrom("operator_request")
    .select(sql<number>`count(*)::int`.as("count"))
    .where("operator", "=", operator)
    .where("requested_at", ">", since)
    .where("state", "=", "done")
    .executeTakeFirstOrThrow();
  return count;
}

/** Deletes requests that have ended before a time. Returns their number. */
export async function deleteOldRequests(db: Db, { before, limit }: { before: Date; limit: number }): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from operator_request where id in (
      select id from operator_request where ended_at < ${before} order by requested_at limit ${limit})`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** Returns true if the audit log says that an operator signed in between two times. */
export async function hasSignedIn(
  db: Db,
  { operator, from, to }: { operator: string; from: Date; to: Date },
): Promise<boolean> {
  const row = await db
    .selectFrom("audit_entry")
    .select("sequence")
    .where("subject", "=", operator)
    .where("actor_id", "=", operator)
    .where("action", "=", "operator.signed_in")
    .where("at", ">=", from)
    .where("at", "<=", to)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the role of an operator who is not disabled. */
export async function findOperatorRole(db: Db, name: string): Promise<OperatorRow["role"] | undefined> {
  const row = await db
    .selectFrom("operator")
    .select("role")
    .where("name", "=", name)
    .where("disabled_at", "is", null)
    .executeTakeFirst();
  return row?.role;
}
