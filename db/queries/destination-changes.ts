import { type Insertable, type Selectable, sql, type Transaction } from "kysely";
import { type ColumnUpdates, moveRows } from "../moves.ts";
import type { Db, Mode, Tables } from "../tables.ts";

export type DestinationChangeRow = Selectable<Tables["destination_change"]>;

/** Inserts requested changes. */
export async function insertDestinationChanges(
  db: Db,
  rows: readonly Insertable<Tables["destination_change"]>[],
): Promise<DestinationChangeRow[]> {
  if (rows.length === 0) return [];
  return db.insertInto("destination_change").values(rows).returningAll().execute();
}

/** Returns a merchant's changes that wait for their time or a decision, oldest first: at most one per asset. */
export async function listWaitingChanges(db: Db, merchantId: string): Promise<DestinationChangeRow[]> {
  return db
    .selectFrom("destination_change")
    .selectAll()
    .where("merchant_id", "=", merchantId)
    .where("state", "=", "requested")
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

type Move = { ids: readonly string[]; at: Date; set: ColumnUpdates<"destination_change"> } & (
  | { from: "requested"; to: "approved" | "applied" | "rejected" }
  | { from: "approved"; to: "applied" }
);

/**
 * Moves changes like `moveRows` and returns those that moved, oldest first. A requested change is applied only when its
 * time has come.
 */
export async function moveDestinationChanges(db: Db, move: Move): Promise<DestinationChangeRow[]> {
  const isDue = sql`applies_at <= ${move.at}`;
  const ids =
    move.from === "approved"
      ? await moveRows(db, "destination_change", move)
      : await moveRows(db, "destination_change", { ...move, where: move.to === "applied" ? isDue : undefined });
  if (ids.length === 0) return [];
  return db
    .selectFrom("destination_change")
    .selectAll()
    .where("id", "in", ids)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

/** Returns one of a merchant's changes. */
export async function findDestinationChange(
  db: Db,
  { merchantId, id }: { merchantId: string; id: string },
): Promise<DestinationChangeRow | undefined> {
  return db
    .selectFrom("destination_change")
    .selectAll()
    .where("id", "=", id)
    .where("merchant_id", "=", merchantId)
    .executeTakeFirst();
}

/** Returns the merchant of a change. */
export async function findChangedMerchant(db: Db, id: string): Promise<string | undefined> {
  const query = db.selectFrom("destination_change").select("merchant_id").where("id", "=", id);
  return (await query.executeTakeFirst())?.merchant_id;
}

/** Selects changes: one of them, those of one merchant, or those of all merchants; in one state, or in any. */
export type ChangeFilter = {
  changeId?: string | undefined;
  merchantId?: string | undefined;
  state?: DestinationChangeRow["state"] | undefined;
};

/**
 * Returns changes, newest first.
 * @param page.after the time and id of the last change of the previous page
 */
export async function listDestinationChanges(
  db: Db,
  { changeId, merchantId, state }: ChangeFilter,
  page: { after?: readonly [string, string] | undefined; limit: number },
): Promise<DestinationChangeRow[]> {
  let query = db.selectFrom("destination_change").selectAll();
  if (changeId !== undefined) query = query.where("id", "=", changeId);
  if (merchantId !== undefined) query = query.where("merchant_id", "=", merchantId);
  if (state !== undefined) query = query.where("state", "=", state);
  if (page.after) query = query.where(sql<boolean>`(created_at, id) < (${page.after[0]}, ${page.after[1]})`);
  return query.orderBy("created_at", "desc").orderBy("id", "desc").limit(page.limit).execute();
}

/** Returns changes whose time has come, longest due first. Reads them without a lock. */
export async function listDueChanges(
  db: Db,
  { now, limit }: { now: Date; limit: number },
): Promise<Pick<DestinationChangeRow, "id" | "merchant_id">[]> {
  return db
    .selectFrom("destination_change")
    .select(["id", "merchant_id"])
    .where("state", "=", "requested")
    .where("applies_at", "<=", now)
    .orderBy("applies_at")
    .limit(limit)
    .execute();
}

/**
 * How long the account's changes wait, whether the merchant has been paid, when its first change was requested, and the assets
 * that it ever had a change for.
 */
export type ChangeTerms = {
  waiting_hours: number;
  has_been_paid: boolean;
  first_change_at: Date | null;
  known_assets: string[];
};

/** Returns what decides when a new change of a merchant applies. Call it under the merchant's lock. */
export async function readChangeTerms(db: Transaction<Tables>, merchantId: string): Promise<ChangeTerms> {
  const { rows } = await sql<ChangeTerms>`
    select a.destination_waiting_hours as waiting_hours,
      exists (select from settlement s where s.merchant_id = m.id and s.state in ('paying', 'paid')) as has_been_paid,
      (select min(created_at) from destination_change c where c.merchant_id = m.id) as first_change_at,
      array(select distinct asset from destination_change c where c.merchant_id = m.id) as known_assets
    from merchant m join account a on a.id = m.account_id where m.id = ${merchantId}`.execute(db);
  const [terms] = rows;
  if (!terms) throw new Error(`there is no merchant ${merchantId}`);
  return terms;
}

/** Returns when a merchant last replaced or deleted a destination (CAIP-10, compared in lower case); null if never. */
export async function findLastReplaced(
  db: Db,
  args: { merchantId: string; asset: string; destination: string },
): Promise<Date | null> {
  const row = await db
    .selectFrom("destination_change")
    .select(({ fn }) => fn.max("applied_at").as("at"))
    .where("merchant_id", "=", args.merchantId)
    .where("asset", "=", args.asset)
    .where(sql<boolean>`lower(before) = ${args.destination}`)
    .executeTakeFirst();
  return row?.at ?? null;
}

/** Changes that wait, by mode and by the last two digits of their numbers. */
export type WaitingChanges = { mode: Mode; change: number; count: number };

/** Returns how many changes wait for their time or a decision. */
export async function countWaitingChanges(db: Db): Promise<WaitingChanges[]> {
  const { rows } = await sql<WaitingChanges>`
    select m.mode, (c.number % 100)::int as change, count(*)::int as count
    from destination_change c join merchant m on m.id = c.merchant_id
    where c.state = 'requested' group by 1, 2 order by 1, 2`.execute(db);
  return rows;
}
