import { type RawBuilder, sql } from "kysely";
import { openPaymentStates } from "../states.ts";
import type { Db } from "../tables.ts";
import { CHUNK, hasEnded } from "./ended-payments.ts";
import {
  acceptsAsset,
  acceptsPayment,
  hasTexts,
  isInList,
  listParts,
  merchantsOf,
  ownersOf,
  type PaymentFilter,
  statesOf,
} from "./payment-filters.ts";
import { type SplitTime, splitTime } from "./sum-spans.ts";

/** Sums over payments: the revenue of succeeded ones by unit, the number of payments, and the number of distinct payers. */
export type PaymentTotals = {
  revenue: { unit: string; value: bigint }[];
  transactions: number;
  customers: number;
};

/**
 * Returns sums over all payments of a filter. Reads the sums of whole days, and one by one the payments of the first and last
 * day, those that are open, and those that have ended since the last fold. A filter by text reads every payment that it may
 * select, which takes about one second per million.
 */
export async function sumPayments(db: Db, filter: PaymentFilter): Promise<PaymentTotals> {
  const { rows } = await selectTotals(filter).execute(db);
  const units = rows.flatMap(({ unit, ...sums }) => (unit === null ? [] : [{ unit, ...sums }]));
  return {
    revenue: units.filter((row) => row.succeeded).map(({ unit, value }) => ({ unit, value })),
    transactions: units.reduce((sum, row) => sum + row.count, 0),
    customers: rows.find(({ unit }) => unit === null)?.count ?? 0,
  };
}

/** The payments of a unit, or the distinct payers of succeeded payments in all units (null). */
type Sum = { unit: string | null; succeeded: boolean; count: number; value: bigint };

/** One statement reads the sums and the payments in one snapshot, so a fold that commits meanwhile changes nothing. */
function selectTotals(filter: PaymentFilter): RawBuilder<Sum> {
  const time = splitTime(filter.from, filter.before);
  const states = statesOf(filter);
  const [sums, sets] = hasTexts(filter)
    ? [sql``, sql`select null::int as chunk, null::bit(32768) as bits where false`]
    : [
        sql`union all select s.unit, s.state, s.count, s.value ${fromSums("payment_sum", filter, time)}
          and ${acceptsAsset(filter, sql`s.asset`)} and s.state = any(${states})`,
        sql`select s.chunk, bit_or(s.bits) as bits ${fromSums("customer_set", filter, time)}
          and ${acceptsSet(filter)} and ${states.includes("succeeded")} group by s.chunk`,
      ];
  return sql<Sum>`
    with recursive ${readOneByOne(filter, time)}, known as materialized (${sets}), payer as (
      select distinct o.payer from single p join payment_option o on o.id = p.option_id where p.state = 'succeeded'
    ), numbered as materialized (
      select (
        select c.number from customer c
        where c.account_id = ${filter.accountId} and c.mode = ${filter.mode} and c.payer = p.payer
      ) as number from payer p
    )
    select unit, state = 'succeeded' as succeeded, sum(count)::bigint as count, sum(value) as value from (
      select unit, state, 1 as count, value from single ${sums}
    ) s group by 1, 2
    union all
    select null, true, (select coalesce(sum(bit_count(bits)), 0) from known)::bigint + count(*), 0
    from numbered n left join known k on k.chunk = n.number / ${sql.lit(CHUNK)}
    where n.number is null or k.bits is null or get_bit(k.bits, n.number % ${sql.lit(CHUNK)}) = 0
    order by 1`;
}

/** SQL: a filter accepts a row \`s\` of \`customer_set\`. The sets of all assets together exist for the whole account only. */
function acceptsSet(filter: PaymentFilter): RawBuilder<boolean> {
  const isWhole = !merchantsOf(filter) && !filter.chains && !filter.assets;
  return isWhole ? sql`s.asset = ''` : sql`s.asset <> '' and ${acceptsAsset(filter, sql`s.asset`)}`;
}

/** SQL: the rows `s` of sums of a filter's whole days. */
function fromSums(
  table: "payment_sum" | "customer_set",
  filter: PaymentFilter,
  { spans }: SplitTime,
): RawBuilder<unknown> {
  return sql`
    from unnest(${spans.map(({ span }) => span)}::text[], ${spans.map(({ from }) => from)}::date[],
      ${spans.map(({ before }) => before)}::date[]) r (span, "from", before)
    join ${sql.table(table)} s on s.account_id = ${filter.accountId} and s.mode = ${filter.mode}
      and s.merchant_id = any(${merchantsOf(filter) ?? [""]}) and s.span = r.span
      and s.starts_on >= r."from" and s.starts_on < r.before
    where true`;
}

/**
 * SQL: a query named `single` with the payments of a filter that are not in the sums of its whole days: those of the rest of
 * the time, those that are open, and those that have ended since the last fold. With a filter by text, all its payments.
 * `offset 0` makes Postgres read each part by its index, however many payments it expects in it.
 */
function readOneByOne(filter: PaymentFilter, { edges, days }: SplitTime): RawBuilder<unknown> {
  const columns = sql`p.unit, p.state, p.value, p.option_id`;
  if (hasTexts(filter)) return sql`single as (select ${columns} from payment p where ${acceptsPayment(filter)})`;
  const ranges = [...edges.map((edge) => ({ ...edge, open: false })), ...(days ? [{ ...days, open: true }] : [])];
  const ofDays = sql`
    union all select ${columns} from ended_payment e join payment p on p.id = e.payment_id and ${hasEnded}
    where e.account_id = ${filter.accountId} and e.mode = ${filter.mode} and ${acceptsPayment(filter)}
      and p.created_at >= ${days?.from}::timestamptz and p.created_at < ${days?.before}::timestamptz`;
  const owners = ownersOf(filter);
  return sql`${listParts(owners, statesOf(filter), filter)}, single as (
    select p.* from list l
    join unnest(${ranges.map(({ from }) => from)}::timestamptz[], ${ranges.map(({ before }) => before)}::timestamptz[],
      ${ranges.map(({ open }) => open)}::boolean[]) r ("from", before, is_open)
      on not r.is_open or l.state = any(${openPaymentStates})
    cross join lateral (
      select ${columns} from payment p where ${isInList(owners)} and p.created_at >= r."from" and p.created_at < r.before
      offset 0
    ) p
    ${days ? ofDays : sql``}
  )`;
}
