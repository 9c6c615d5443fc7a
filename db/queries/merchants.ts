import {
  type ExpressionBuilder,
  type Insertable,
  type Selectable,
  sql,
  type Transaction,
  type Updateable,
} from "kysely";
import { batchStatements } from "../batch-calls.ts";
import { sumInTransit } from "../sum-in-transit.ts";
import type { Db, Mode, Tables } from "../tables.ts";

export type MerchantRow = Selectable<Tables["merchant"]>;

/**
 * A merchant of an account and mode. `evenDeleted` includes a deleted merchant. `onlyMerchants` are the merchants that the
 * caller's key is restricted to; null or unset: all of them.
 */
export type OwnedMerchant = {
  merchantId: string;
  accountId: string;
  mode: Mode;
  evenDeleted?: true;
  onlyMerchants?: readonly string[] | null;
};

const isOwned =
  ({ accountId, mode, merchantId, evenDeleted, onlyMerchants }: OwnedMerchant) =>
  (where: ExpressionBuilder<Tables, "merchant">) => {
    const owned = where.and({ id: merchantId, account_id: accountId, mode });
    const reached = onlyMerchants ? owned.and(sql<boolean>`id = any(${onlyMerchants})`) : owned;
    return evenDeleted ? reached : reached.and("deleted_at", "is", null);
  };

/** Inserts a merchant. */
export async function insertMerchant(db: Db, row: Insertable<Tables["merchant"]>): Promise<MerchantRow> {
  return db.insertInto("merchant").values(row).returningAll().executeTakeFirstOrThrow();
}

/** Returns a merchant of an account and mode. */
export async function findOwnedMerchant(db: Db, owned: OwnedMerchant): Promise<MerchantRow | undefined> {
  return db.selectFrom("merchant").selectAll().where(isOwned(owned)).executeTakeFirst();
}

/** Returns true if an account and mode have this merchant. */
export async function hasMerchant(db: Db, owned: OwnedMerchant): Promise<boolean> {
  const row = await db.selectFrom("merchant").select("id").where(isOwned(owned)).executeTakeFirst();
  return row !== undefined;
}

/** Returns those of these ids that are not merchants of an account and mode, or that are deleted. */
export async function listMissingMerchants(
  db: Db,
  { accountId, mode, ids }: { accountId: string; mode: Mode; ids: readonly string[] },
): Promise<string[]> {
  const rows = await selectMerchants(db, { accountId, mode, onlyMerchants: ids }).select("id").execute();
  const found = new Set(rows.map(({ id }) => id));
  return ids.filter((id) => !found.has(id));
}

/**
 * Locks a merchant until the commit; other transactions can still insert rows that refer to it. Returns false when the
 * account and mode do not have this merchant.
 */
export async function lockMerchant(db: Transaction<Tables>, owned: OwnedMerchant): Promise<boolean> {
  const row = await db.selectFrom("merchant").select("id").where(isOwned(owned)).forNoKeyUpdate().executeTakeFirst();
  return row !== undefined;
}

/** Returns true when another merchant of the account and mode has this name and e-mail address, whatever their case. */
export async function hasNamesake(
  db: Db,
  args: Pick<OwnedMerchant, "accountId" | "mode"> & { name: string; email: string; other?: string },
): Promise<boolean> {
  const row = await db
    .selectFrom("merchant")
    .select("id")
    .where("account_id", "=", args.accountId)
    .where("mode", "=", args.mode)
    .where("deleted_at", "is", null)
    .where(sql<boolean>`lower(email) = lower(${args.email}) and lower(name) = lower(${args.name})`)
    .where("id", "<>", args.other ?? "")
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the account and mode of a merchant, also of a deleted one. */
export async function findOwner(db: Db, id: string): Promise<Pick<MerchantRow, "account_id" | "mode"> | undefined> {
  return db.selectFrom("merchant").select(["account_id", "mode"]).where("id", "=", id).executeTakeFirst();
}

/** Selects the merchants of a list that are not deleted. `search` matches a part of the name or the whole id. */
type MerchantFilter = Pick<OwnedMerchant, "accountId" | "mode" | "onlyMerchants"> & {
  status?: MerchantRow["status"] | undefined;
  search?: string | undefined;
};

/** Returns the number of merchants that a filter selects. */
export async function countMerchants(db: Db, filter: MerchantFilter): Promise<number> {
  const { count } = await selectMerchants(db, filter)
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Returns a page of merchants, newest first. `after`: creation time and id of the previous page's last merchant. */
export async function listMerchantRows(
  db: Db,
  filter: MerchantFilter,
  { after, limit }: { after: readonly [string, string] | undefined; limit: number },
): Promise<MerchantRow[]> {
  let page = selectMerchants(db, filter).selectAll().orderBy("created_at", "desc").orderBy("id", "desc").limit(limit);
  if (after) page = page.where(sql<boolean>`(created_at, id) < (${after[0]}::timestamptz, ${after[1]})`);
  return page.execute();
}

function selectMerchants(db: Db, { accountId, mode, onlyMerchants, status, search }: MerchantFilter) {
  let matching = db
    .selectFrom("merchant")
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .where("deleted_at", "is", null);
  if (onlyMerchants) matching = matching.where(sql<boolean>`id = any(${onlyMerchants})`);
  if (status) matching = matching.where("status", "=", status);
  if (search)
    matching = matching.where((where) =>
      where.or([where("id", "=", search), sql<boolean>`position(lower(${search}) in lower(name)) > 0`]),
    );
  return matching;
}

/** Updates a merchant. Returns undefined when the account and mode do not have it. */
export async function updateMerchant(
  db: Db,
  owned: OwnedMerchant,
  changes: Pick<Updateable<Tables["merchant"]>, "name" | "email" | "icon_url" | "logo_id" | "status">,
): Promise<MerchantRow | undefined> {
  return db.updateTable("merchant").set(changes).where(isOwned(owned)).returningAll().executeTakeFirst();
}

/** Marks a merchant as deleted; keeps the time of an earlier deletion. Returns false when there is no such merchant. */
export async function markMerchantDeleted(db: Db, owned: OwnedMerchant, at: Date): Promise<boolean> {
  const row = await db
    .updateTable("merchant")
    .set({ deleted_at: sql`coalesce(deleted_at, ${at})` })
    .where(isOwned({ ...owned, evenDeleted: true }))
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Stores since when a merchant's payouts are held; null resumes them. */
export async function recordPayoutHold(db: Db, args: { merchantId: string; since: Date | null }): Promise<void> {
  await db.updateTable("merchant").set({ payouts_held_at: args.since }).where("id", "=", args.merchantId).execute();
}

/** Returns since when payouts are held, by merchant; of these merchants, those whose payouts are held. */
export async function findPayoutHolds(db: Db, merchantIds: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  const rows = await db
    .selectFrom("merchant")
    .select(["id", sql<Date>`payouts_held_at`.as("since")])
    .where(sql<boolean>`id = any(${merchantIds})`)
    .where("payouts_held_at", "is not", null)
    .execute();
  return new Map(rows.map(({ id, since }) => [id, since]));
}

type PayableMerchant = Pick<MerchantRow, "id" | "name" | "logo_id" | "status"> & {
  /** The assets of its destinations. */
  settled: string[];
  /** The assets of its destinations that accept other assets of the same currency. */
  takers: string[];
  has_collection_policy: boolean;
};

/** Returns a merchant of an account and mode with what the creation of a payment depends on. */
export async function findPayableMerchant(
  db: Db,
  { merchantId, accountId, mode, onlyMerchants }: Omit<OwnedMerchant, "evenDeleted">,
): Promise<PayableMerchant | undefined> {
  if (onlyMerchants?.includes(merchantId) === false) return undefined;
  const row = await readPayable(db, merchantId);
  return row?.account_id === accountId && row.mode === mode ? row : undefined;
}

/** Reads a merchant that is not deleted. Concurrent calls share a statement, because every creation reads its merchant. */
const readPayable = batchStatements(async (db: Db, ids: readonly string[]) => {
  const paidIn = sql`from settlement_destination d where d.merchant_id = merchant.id`;
  const rows = await db
    .selectFrom("merchant")
    .select(["id", "account_id", "mode", "name", "logo_id", "status"])
    .select([
      sql<string[]>`array(select asset ${paidIn})`.as("settled"),
      sql<string[]>`array(select asset ${paidIn} and accepts_other_assets)`.as("takers"),
      sql<boolean>`exists (select from collection_policy c where c.merchant_id = merchant.id)`.as(
        "has_collection_policy",
      ),
    ])
    .where(sql<boolean>`id = any(${[...new Set(ids)]})`)
    .where("deleted_at", "is", null)
    .execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id));
});

/** What a merchant is owed, minor units of each asset, by asset: what is not paid out, and payouts that are not final. */
type Owed = { asset: string; amount: bigint; inTransit: bigint }[];
/** When a merchant was deleted, since when its payouts are held, and what it is owed. */
export type MerchantDebt = Pick<MerchantRow, "deleted_at" | "payouts_held_at"> & { owed: Owed };
export type DeletedMerchant = MerchantDebt & Pick<MerchantRow, "id" | "name">;

/** JSON has no exact numbers, so amounts are text in it. */
const owedTo = sql<{ asset: string; amount: string; inTransit: string }[]>`(
  select coalesce(jsonb_agg(jsonb_build_object('asset', b.asset, 'amount', b.amount::text,
    'inTransit', s.in_transit::text) order by b.asset), '[]')
  from merchant_balance b cross join lateral (${sumInTransit}) s
  where b.merchant_id = merchant.id and (b.amount > 0 or s.in_transit > 0))`;
const toOwed = (owed: readonly { asset: string; amount: string; inTransit: string }[]): Owed =>
  owed.map(({ asset, amount, inTransit }) => ({ asset, amount: BigInt(amount), inTransit: BigInt(inTransit) }));

/** Returns the balances of a merchant, also of a deleted one. */
export async function findMerchantDebt(db: Db, id: string): Promise<MerchantDebt | undefined> {
  const row = await db
    .selectFrom("merchant")
    .select(["deleted_at", "payouts_held_at", owedTo.as("owed")])
    .where("id", "=", id)
    .executeTakeFirst();
  return row && { ...row, owed: toOwed(row.owed) };
}

/** Returns the deleted merchants of an account and mode with their balances, most recently deleted first. */
export async function listDeletedMerchantRows(
  db: Db,
  args: { accountId: string; mode: Mode; limit: number },
): Promise<DeletedMerchant[]> {
  const rows = await db
    .selectFrom("merchant")
    .select(["id", "name", "deleted_at", "payouts_held_at", owedTo.as("owed")])
    .where("account_id", "=", args.accountId)
    .where("mode", "=", args.mode)
    .where("deleted_at", "is not", null)
    .orderBy("deleted_at", "desc")
    .orderBy("id")
    .limit(args.limit)
    .execute();
  return rows.map((row) => ({ ...row, owed: toOwed(row.owed) }));
}
