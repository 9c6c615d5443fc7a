import { sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { moveRows } from "../moves.ts";
import type { Db, Pool } from "../tables.ts";
import { type NewSettlement, type SettlementRow, toSettlementRow } from "./settlements.ts";

/** An amount of a merchant's accumulating settlement: of what came in other assets (`converted`), or in the settlement's own. */
export type AccumulatingPart = { converted: boolean; amount: bigint };

/** An accumulating settlement, and when it is due. */
export type AccumulatingSettlement = { id: string; converted: boolean; due_at: Date };

/**
 * Returns the accumulating settlements of a merchant and asset: those of what came in other assets (`converted`), in the settlement's own,
 * or both. With `lock`, locks them until the commit, in the order of their ids, as refunds do (avoids deadlock).
 */
export async function listAccumulating(
  db: Db,
  args: { merchantId: string; asset: string; converted: readonly boolean[] },
  { lock = false } = {},
): Promise<Pick<SettlementRow, "id" | "converted">[]> {
  const { merchantId, asset, converted } = args;
  const query = db
    .selectFrom("settlement")
    .select(["id", "converted"])
    .where("merchant_id", "=", merchantId)
    .where("asset", "=", asset)
    .where("state", "=", "accumulating")
    .where(sql<boolean>`converted = any(${converted}::boolean[])`)
    .orderBy("id");
  return (lock ? query.forUpdate() : query).execute();
}

/** Adds to locked accumulating settlements, and makes those due at once that reach `limit`. Returns them. */
export async function addToAccumulating(
  db: Db,
  args: { additions: readonly { id: string; amount: bigint }[]; limit: bigint | null; at: Date },
): Promise<AccumulatingSettlement[]> {
  const { additions, limit, at } = args;
  if (additions.length === 0) return [];
  const { rows } = await sql<AccumulatingSettlement>`
    update settlement s set amount = s.amount + a.amount,
      due_at = case when s.amount + a.amount >= ${limit}::numeric then ${at}::timestamptz else s.due_at end
    from unnest(${additions.map(({ id }) => id)}::text[], ${additions.map(({ amount }) => amount)}::numeric[]) as a (id, amount)
    where s.id = a.id returning s.id, s.converted, s.due_at`.execute(db);
  return rows;
}

/** Inserts an accumulating settlement. When another worker inserts one at the same time, adds to that one. */
export async function beginAccumulating(
  db: Db,
  settlement: NewSettlement & { dueAt: Date },
  at: Date,
): Promise<AccumulatingSettlement> {
  const row = await db
    .insertInto("settlement")
    .values({ ...toSettlementRow(settlement, at), state: "accumulating" })
    .onConflict((conflict) =>
      conflict
        .columns(["merchant_id", "asset", "converted"])
        // Not a parameter: Postgres plans a prepared statement without its values, and would not find the index.
        .where("state", "=", sql.lit("accumulating"))
        .doUpdateSet({ amount: sql`settlement.amount + excluded.amount` }),
    )
    .returning(["id", "converted", "due_at"])
    .executeTakeFirstOrThrow();
  return { ...row, due_at: row.due_at ?? settlement.dueAt };
}

/** When an accumulating settlement of a merchant and asset is paid out. */
export type PayoutSchedule = {
  merchant_id: string;
  asset: string;
  accumulation_ms: number;
  accumulation_amount: bigint | null;
};

/** Returns the payout schedules of these merchants, without assets that are paid out at once. */
export async function listPayoutSchedules(db: Db, merchantIds: readonly string[]): Promise<PayoutSchedule[]> {
  const { rows } = await sql<PayoutSchedule>`
    select merchant_id, asset, accumulation_ms, accumulation_amount
    from settlement_destination where merchant_id = ${anyOf(merchantIds)} and accumulation_ms is not null`.execute(db);
  return rows;
}

/**
 * Closes accumulating settlements, to which nothing is added from then on. Skips settlements of a merchant whose payouts
 * are held, and settlements below their minimum. A deleted merchant has no minimum, because nothing more will be added. Closes those of
 * one balance after those of another: a booking locks them in the order of balances, and not of ids (avoids deadlock).
 * @param options.isPaid the chain has paid the settlements, so there is no minimum either
 */
export async function closeAccumulating(
  db: Pool,
  ids: readonly string[],
  at: Date,
  { isPaid = false } = {},
): Promise<void> {
  const where = sql`exists (select from merchant m where m.id = merchant_id and m.payouts_held_at is null)
    and (${isPaid} or not exists (select from settlement_destination d join merchant m on m.id = d.merchant_id
      where d.merchant_id = settlement.merchant_id and d.asset = settlement.asset and d.minimum > settlement.amount
        and m.deleted_at is null))`;
  const rows = await db
    .selectFrom("settlement")
    .select(["id", "merchant_id", "asset"])
    .where(sql<boolean>`id = ${anyOf(ids)}`)
    .where("state", "=", "accumulating")
    .execute();
  for (const ofBalance of Map.groupBy(rows, (row) => `${row.merchant_id} ${row.asset}`).values()) {
    const move = { ids: ofBalance.map(({ id }) => id), from: "accumulating" as const, to: "due" as const, at };
    await moveRows(db, "settlement", { ...move, where, set: { closed_at: at } });
  }
}
