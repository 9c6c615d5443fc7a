import { sql } from "kysely";
import type { Db } from "../tables.ts";
import type { MerchantRow } from "./merchants.ts";

/** Options that are read of one payer: renewed quotes of the same payments are most of them. */
const MOST_OPTIONS = 1_000;

/** SQL: a query `hour`, to follow `with recursive`: the hours that have options, the last one first. */
export const selectOptionHours = sql`
  hour (number) as (
    select max(option_hour(created_at)) from payment_option
    union all
    select (
      select option_hour(created_at) from payment_option where option_hour(created_at) < h.number
      order by option_hour(created_at) desc limit 1
    ) from hour h where h.number is not null
  )`;

/**
 * Returns the ids of the newest payments for which one of these addresses had an option. Steps back through the hours that
 * have options, until it has enough of the addresses.
 */
export async function listPaymentsOfPayer(
  db: Db,
  { payers, limit }: { payers: readonly string[]; limit: number },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with recursive ${selectOptionHours}
    select payment_id as id from (
      select o.payment_id, o.created_at from hour h cross join lateral (
        select payment_id, created_at from payment_option
        where option_hour(created_at) = h.number and right(payer, 8) = any(${payers.map((one) => one.slice(-8))})
          and payer = any(${payers})
        offset 0
      ) o limit ${MOST_OPTIONS}
    ) found group by payment_id order by max(created_at) desc, payment_id limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}

/** What an operator sees of a merchant. */
export type MerchantSummary = Pick<
  MerchantRow,
  "id" | "account_id" | "mode" | "name" | "status" | "payouts_held_at" | "created_at" | "deleted_at"
>;

const summaryColumns = [
  "id",
  "account_id",
  "mode",
  "name",
  "status",
  "payouts_held_at",
  "created_at",
  "deleted_at",
] as const;

/** Returns merchants with this name, without regard to case, the newest first; deleted ones too. It reads all merchants. */
export async function listMerchantsNamed(db: Db, name: string, limit: number): Promise<MerchantSummary[]> {
  return db
    .selectFrom("merchant")
    .select(summaryColumns)
    .where(sql`lower(name)`, "=", sql`lower(${name})`)
    .orderBy("created_at", "desc")
    .limit(limit)
    .execute();
}

/** Returns a merchant, also a deleted one. */
export async function findMerchantSummary(db: Db, id: string): Promise<MerchantSummary | undefined> {
  return db.selectFrom("merchant").select(summaryColumns).where("id", "=", id).executeTakeFirst();
}

/** Returns merchants whose payouts an operator holds, the longest held first. It reads all merchants. */
export async function listHeldMerchants(db: Db, limit: number): Promise<MerchantSummary[]> {
  return db
    .selectFrom("merchant")
    .select(summaryColumns)
    .where("payouts_held_at", "is not", null)
    .orderBy("payouts_held_at")
    .limit(limit)
    .execute();
}
