import { type RawBuilder, sql } from "kysely";
import type { Db } from "../tables.ts";
import {
  acceptsMerchant,
  acceptsPayment,
  acceptsTexts,
  acceptsTime,
  isInList,
  listParts,
  ownersOf,
  type PaymentFilter,
  statesOf,
} from "./payment-filters.ts";
import { deducted } from "./settlement-deductions.ts";
import { selectSingle } from "./single-payments.ts";
import { splitTime } from "./sum-spans.ts";
import { selectKept, selectOwners } from "./summed-payments.ts";

export type PaymentOrder = {
  by: "date" | "amount";
  dir: "asc" | "desc";
  after?: readonly [string, string] | undefined;
};

export type ListedPayment = Awaited<ReturnType<typeof listPaymentRows>>[number];

/**
 * A list by amount reads all matching payments and sorts them, up to this number of them. With more it reads the payments of
 * the account by amount until enough of them match, at least one in a hundred of two million.
 */
const MOST_SORTED = 20_000;
/**
 * A list of a reference by date sorts the times of all matching payments, which are kept with the sums, up to this number of them:
 * those of a text may all be old. With more it reads payments by their time until enough match.
 */
const MOST_KEPT = 200_000;

/**
 * Returns a page of payments with their merchant, the paying option and the payout. Ties are ordered by id. `matching` is the
 * number of payments that the filter selects.
 */
export async function listPaymentRows(
  db: Db,
  filter: PaymentFilter,
  { order, limit, matching }: { order: PaymentOrder; limit: number; matching: number },
) {
  if (matching === 0) return [];
  return selectPage(db, filter, { order, limit, matching }).execute();
}

/** Builds the query of `listPaymentRows`. Exported for a test of its query plan. */
export function selectPage(
  db: Db,
  filter: PaymentFilter,
  { order, limit, matching }: { order: PaymentOrder; limit: number; matching: number },
) {
  const isFew = matching <= MOST_SORTED;
  // Few payments have the metadata of a filter, and an index finds them.
  const readsAll = filter.metadata !== undefined || (order.by === "amount" && !isFew);
  const found = readsAll
    ? sql`select p.id from payment p where ${acceptsPayment(filter)} and ${isAfterCursor(order)} ${firstOf(order, limit)}`
    : filter.reference !== undefined && matching <= MOST_KEPT
      ? selectFromKept(filter, order, limit)
      : selectFromList(filter, order, limit);
  return db
    .selectFrom("payment as p")
    .where(sql<boolean>`p.id = any(array(${found}))`)
    .innerJoin("merchant as m", "m.id", "p.merchant_id")
    .leftJoin("payment_option as o", "o.id", "p.option_id")
    .leftJoin("settlement as s", "s.id", "p.settlement_id")
    .selectAll("p")
    .select([
      "m.name as merchant_name",
      "m.logo_id as merchant_logo_id",
      "o.account as buyer",
      sql<string | null>`split_part(p.asset, '/', 1)`.as("chain"),
      sql<bigint | null>`coalesce(o.amount, p.paid_amount)`.as("option_amount"),
      sql<bigint>`coalesce(o.fee, 0)`.as("option_fee"),
      sql<bigint>`coalesce(o.fee_fixed, 0)`.as("option_fee_fixed"),
      sql<number>`coalesce(o.fee_basis_points, 0)`.as("option_fee_basis_points"),
      "s.state as settlement_state",
      "s.paid_at as settled_at",
      settlementHash.as("settlement_tx_hash"),
      deducted.as("deducted"),
    ])
    .orderBy(columnOf(order), order.dir)
    .orderBy("p.id", order.dir);
}

/** The transaction of the payout, once it is booked. */
const settlementHash = sql<string | null>`coalesce(s.tx_hash, (
  select g.tx_hash from transfer t join ledger_group g on g.kind = 'settlement_paid' and g.subject = t.id
  where t.settlement_id = p.settlement_id and t.purpose = 'settlement'))`;

/**
 * SQL: the ids of a page, merged from the parts of a list. By date, it reads the first payment of each part, and then none that
 * comes after as many of these as the page has: of many parts it reads few payments each.
 */
function selectFromList(filter: PaymentFilter, order: PaymentOrder, limit: number): RawBuilder<unknown> {
  const owners = ownersOf(filter);
  const accepts = sql`${isInList(owners)} and ${acceptsTime(filter)} and ${acceptsTexts(filter)} and ${isAfterCursor(order)}`;
  const dir = sql.raw(order.dir);
  const last = sql`
    select created_at from list l cross join lateral (
      select p.created_at from payment p where ${accepts} order by p.created_at ${dir} limit 1
    ) p order by 1 ${dir} offset ${limit - 1} limit 1`;
  const isNear = sql`p.created_at ${order.dir === "asc" ? sql`<=` : sql`>=`}
    coalesce((${last}), ${order.dir === "asc" ? "infinity" : "-infinity"})`;
  return sql`
    with recursive ${listParts(owners, statesOf(filter), filter)}
    select p.id from list l cross join lateral (
      select p.id, ${columnOf(order)} from payment p where ${accepts} and ${order.by === "date" ? isNear : sql`true`}
      ${firstOf(order, limit)}
    ) p ${firstOf(order, limit)}`;
}

/**
 * SQL: the ids of a page of payments whose reference contains a text: of the kept payments it reads only those that are first by
 * their time or amount. The second part finds payments by their time, and so also those of the first part that have the time of a
 * summed one: `union` counts each once.
 */
function selectFromKept(filter: PaymentFilter, order: PaymentOrder, limit: number): RawBuilder<unknown> {
  const { all } = splitTime(filter.from, filter.before);
  return sql`
    with recursive ${selectOwners(filter)}, ${selectSingle(filter, sql`p.id, p.value, p.created_at`)},
    ${selectKept(filter, [all])}
    select p.id from (
      select id, value, created_at from single
      union
      select p.id, p.value, p.created_at from (select distinct k.kind, k.at from (${firstKept(order, limit)}) k) k
      join summed_kind kind on kind.id = k.kind
      cross join lateral (
        select p.id, p.value, p.created_at from payment p
        where p.account_id = ${filter.accountId} and p.mode = ${filter.mode} and p.state = kind.state
          and coalesce(p.asset, '') = kind.asset and p.created_at = k.at and ${acceptsMerchant(filter)}
          and ${acceptsTexts(filter)} offset 0
      ) p
    ) p where ${isAfterCursor(order)} ${firstOf(order, limit)}`;
}

/** SQL: the kinds and times of the kept payments of a page, and of all others that have the time or amount of the cursor or of the last. */
function firstKept({ by, dir, after }: PaymentOrder, limit: number): RawBuilder<unknown> {
  const [column, type] = by === "date" ? [sql`at`, sql`timestamptz`] : [sql`amount`, sql`numeric`];
  const order = sql.raw(dir);
  const first = (where: RawBuilder<unknown>) =>
    sql`(select kind, at from kept where ${where} order by ${column} ${order} fetch first ${sql.lit(limit)} rows with ties)`;
  if (!after) return first(sql`true`);
  const start = sql`${after[0]}::${type}`;
  return sql`
    select kind, at from kept where ${column} = ${start}
    union all ${first(sql`${column} ${dir === "asc" ? sql`>` : sql`<`} ${start}`)}`;
}

const columnOf = ({ by }: PaymentOrder) => (by === "date" ? sql`p.created_at` : sql`p.value`);

function isAfterCursor(order: PaymentOrder): RawBuilder<boolean> {
  const { by, dir, after } = order;
  if (!after) return sql`true`;
  const start = by === "date" ? sql`${after[0]}::timestamptz` : sql`${after[0]}::numeric`;
  return sql`(${columnOf(order)}, p.id) ${dir === "asc" ? sql`>` : sql`<`} (${start}, ${after[1]})`;
}

function firstOf(order: PaymentOrder, limit: number): RawBuilder<unknown> {
  const dir = sql.raw(order.dir);
  return sql`order by ${columnOf(order)} ${dir}, p.id ${dir} limit ${limit}`;
}
