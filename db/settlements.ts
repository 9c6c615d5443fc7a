import { type Selectable, sql } from "kysely";
import type { Db, Mode, Tables } from "./tables.ts";

export type SettlementRow = Selectable<Tables["settlement"]>;
export type NewSettlement = {
  id: string;
  merchantId: string;
  mode: Mode;
  asset: string;
  number: number;
  amount: bigint;
  dueAt: Date;
};

/** Writes settlements that are due. */
export async function insertSettlements(db: Db, settlements: readonly NewSettlement[], at: Date): Promise<void> {
  if (settlements.length === 0) return;
  await db
    .insertInto("settlement")
    .values(settlements.map((one) => ({ ...toRow(one, at), state: "due" as const })))
    .execute();
}

/**
 * Adds to the settlement that gathers for a merchant and asset, if there is one: it falls due at once when that brings
 * it to a limit. Gives its id and when it is due.
 */
export async function addToGathering(
  db: Db,
  args: { merchantId: string; asset: string; amount: bigint; limit: bigint | null; at: Date },
): Promise<Gathering | undefined> {
  const { rows } = await sql<Gathering>`
    update settlement set amount = amount + ${args.amount},
      due_at = case when amount + ${args.amount} >= ${args.limit}::numeric then ${args.at}::timestamptz else due_at end
    where merchant_id = ${args.merchantId} and asset = ${args.asset} and state = 'gathering'
    returning id, due_at as "dueAt"`.execute(db);
  return rows[0];
}

/** A settlement that gathers, or has gathered enough. */
export type Gathering = { id: string; dueAt: Date };

/** Begins a settlement that gathers; when somebody has begun one at this moment, adds to that. */
export async function beginGathering(db: Db, settlement: NewSettlement, at: Date): Promise<Gathering> {
  const row = await db
    .insertInto("settlement")
    .values({ ...toRow(settlement, at), state: "gathering" })
    .onConflict((conflict) =>
      conflict
        .columns(["merchant_id", "asset"])
        .where("state", "=", "gathering")
        .doUpdateSet({ amount: sql`settlement.amount + excluded.amount` }),
    )
    .returning(["id", "due_at"])
    .executeTakeFirstOrThrow();
  return { id: row.id, dueAt: row.due_at ?? settlement.dueAt };
}

function toRow(one: NewSettlement, at: Date) {
  const { id, merchantId: merchant_id, mode, asset, number, amount, dueAt: due_at } = one;
  return { id, merchant_id, mode, asset, number, amount, destination: null, created_at: at, paid_at: null, due_at };
}

/** Ties payments to the settlements that pay them out. */
export async function tieSettlements(
  db: Db,
  ties: readonly { paymentId: string; settlementId: string }[],
): Promise<void> {
  if (ties.length === 0) return;
  await sql`
    update payment set settlement_id = pair.settlement_id
    from unnest(${ties.map((one) => one.paymentId)}::text[], ${ties.map((one) => one.settlementId)}::text[]) as pair (payment_id, settlement_id)
    where payment.id = pair.payment_id`.execute(db);
}

/** How payouts of these merchants and assets are gathered; those that are paid at once are left out. */
export async function listGatherings(
  db: Db,
  merchantIds: readonly string[],
): Promise<{ merchantId: string; asset: string; ms: number; amount: bigint | null }[]> {
  const { rows } = await sql<{ merchantId: string; asset: string; ms: number; amount: bigint | null }>`
    select merchant_id as "merchantId", asset, gather_ms as ms, gather_amount as amount
    from settlement_destination where merchant_id = any(${merchantIds}) and gather_ms is not null`.execute(db);
  return rows;
}

/** A settlement with the destination that is registered for it now; null when there is none. */
export type SettlementWithDestination = SettlementRow & { registered: string | null };

/** Those of these settlements that still have to be begun; in no particular order. */
export async function listDueSettlements(db: Db, ids: readonly string[]): Promise<SettlementWithDestination[]> {
  return db
    .selectFrom("settlement as s")
    .leftJoin("settlement_destination as d", (join) =>
      join.onRef("d.merchant_id", "=", "s.merchant_id").onRef("d.asset", "=", "s.asset"),
    )
    .selectAll("s")
    .select("d.destination as registered")
    .where(sql<boolean>`s.id = any(${ids})`)
    .where("s.state", "=", "due")
    .execute();
}
