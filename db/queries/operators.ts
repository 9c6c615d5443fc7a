import { type Insertable, type Selectable, sql, type Updateable } from "kysely";
import type { Db, Tables } from "../tables.ts";

export type OperatorRow = Selectable<Tables["operator"]>;

/** Blocks other changes of operators until the commit, so that rules about all of them hold. */
export async function lockOperators(db: Db): Promise<void> {
  await sql`lock table operator in share row exclusive mode`.execute(db);
}

/** Inserts an operator. */
export async function insertOperator(db: Db, row: Insertable<Tables["operator"]>): Promise<void> {
  await db.insertInto("operator").values(row).execute();
}

/** Returns an operator, also a disabled one. */
export async function findOperator(db: Db, name: string): Promise<OperatorRow | undefined> {
  return db.selectFrom("operator").selectAll().where("name", "=", name).executeTakeFirst();
}

/** Returns all operators by name, also disabled ones. */
export async function listOperatorRows(db: Db): Promise<OperatorRow[]> {
  return db.selectFrom("operator").selectAll().orderBy("name").execute();
}

/** Updates an operator and ends their sessions. */
export async function updateOperator(
  db: Db,
  name: string,
  changes: Omit<Updateable<Tables["operator"]>, "name" | "created_at">,
): Promise<void> {
  await db.updateTable("operator").set(changes).where("name", "=", name).execute();
  await db.deleteFrom("operator_session").where("operator", "=", name).execute();
}

/**
 * Marks the code of a TOTP step as used. Returns false when the code of this step, or of a later one, was used before, or
 * the operator is disabled.
 */
export async function useTotpStep(db: Db, { name, step }: { name: string; step: number }): Promise<boolean> {
  const row = await db
    .updateTable("operator")
    .set({ totp_step: step })
    .where("name", "=", name)
    .where("totp_step", "<", step)
    .where("disabled_at", "is", null)
    .returning("name")
    .executeTakeFirst();
  return row !== undefined;
}
