import { type RawBuilder, sql } from "kysely";
import { CHUNK } from "./ended-payments.ts";
import { acceptsAsset, merchantsOf, type PaymentFilter, statesOf } from "./payment-filters.ts";
import { type SpanRange, type SplitTime, splitDays, type TimeRange } from "./sum-spans.ts";

type Sql = RawBuilder<unknown>;

/**
 * SQL: queries named `account`, `merchants` and `kind`: the ids of a filter's account, of the merchants that it selects, and
 * of the kinds that it selects. `addend` has the owners whose sums are added (`sign` 1) or subtracted (-1): of most merchants of
 * an account, the sums are those of the account without the other merchants.
 */
export function selectOwners(filter: PaymentFilter): Sql {
  const merchants = merchantsOf(filter);
  const own = sql`from summed_owner where account_id = ${filter.accountId} and mode = ${filter.mode}`;
  return sql`
    account as materialized (select id, sets_before ${own} and merchant_id = ''),
    merchants as materialized (
      select id ${own} and ${merchants ? sql`merchant_id = any(${merchants})` : sql`merchant_id <> ''`}),
    ${merchants ? selectAddends(own) : sql`addend (id, sign) as (select id, 1 from account)`},
    kind as materialized (
      select k.id from account a join summed_kind k on k.owner = a.id
      where k.state = any(${statesOf(filter)}) and ${acceptsAsset(filter, sql`k.asset`)})`;
}

/** SQL: the query `addend` of a filter that selects merchants. It reads no more other merchants than the filter selects. */
const selectAddends = (own: Sql): Sql => sql`
    others as materialized (
      select id ${own} and merchant_id <> '' and (id in (select id from merchants)) is not true
      limit (select count(*) from merchants)),
    addend (id, sign) as materialized (
      select s.id, s.sign from (select (select count(*) from merchants) > (select count(*) from others) as is_most) c
      cross join lateral (
        select id, 1 from merchants where not is_most
        union all select id, 1 from account where is_most
        union all select id, -1 from others where is_most
      ) s (id, sign))`;

/**
 * SQL: a filter selects this kind. `is true` makes Postgres look it up in a hash. A join with a query, of which it does not know
 * the size, may compare every row with every kind.
 */
const isOfKind = (kind: Sql) => sql`(${kind} in (select id from kind)) is true`;

/** SQL: selects the columns `kind`, `count` and `amount` of the sums of whole days, which `selectOwners` and its filter select. */
export function selectSums({ days }: SplitTime): Sql {
  const spans = days ? splitDays(days.start, days.end, ["year", "month", "day"]) : [];
  return sql`
    select s.kind, s.count * o.sign as count, s.amount * o.sign as amount from ${rangesOf(spans)} cross join addend o
    cross join lateral (
      select s.kind, s.count, s.value as amount from payment_sum s
      where s.owner = o.id and s.span = r.span and s.starts_on >= r."from" and s.starts_on < r.before offset 0
    ) s where ${isOfKind(sql`s.kind`)}`;
}

/**
 * SQL: a query named `kept` with the payments of these times that are part of the sums. With a reference, only those whose
 * reference contains it: an index of trigrams finds the rows, or Postgres reads the references of all merchants.
 */
export function selectKept(filter: PaymentFilter, times: readonly TimeRange[]): Sql {
  const { reference } = filter;
  const columns = sql`unnest(s.kinds) as kind, unnest(s.times) as at, unnest(s.amounts) as amount, unnest(s.customers) as customer`;
  const days = sql`s.day between (r."from" at time zone 'UTC')::date and (r.before at time zone 'UTC')::date`;
  const ranges = sql`
    unnest(${times.map(({ from }) => from)}::timestamptz[], ${times.map(({ before }) => before)}::timestamptz[])
      r ("from", before)`;
  const contains = (text: Sql) => sql`position(lower(${reference}) in ${text}) > 0`;
  const isOfTime = sql`k.at >= k."from" and k.at < k.before and ${isOfKind(sql`k.kind`)}`;
  if (times.length === 0)
    return sql`kept as (
      select null::integer as kind, null::timestamptz as at, null::numeric as amount, null::integer as customer where false)`;
  return reference === undefined
    ? sql`kept as materialized (
        select k.kind, k.at, k.amount, k.customer from (
          select r."from", r.before, ${columns} from ${ranges} cross join merchants m cross join lateral (
            select * from summed_payment s where s.owner = m.id and ${days} offset 0
          ) s
        ) k where ${isOfTime})`
    : sql`kept as materialized (
        select k.kind, k.at, k.amount, k.customer from (
          select r."from", r.before, ${columns}, string_to_table(s.texts, e'\n') as text
          from ${ranges} join summed_payment s on ${days} and ${contains(sql`s.texts`)} and ${containsEnds(reference)}
          where s.owner = any(array(select id from merchants))
        ) k where ${isOfTime} and ${contains(sql`k.text`)})`;
}

/**
 * SQL: queries named `known`, the sets of the customers of a filter's whole days, and `counted`, the numbers of the customers of
 * payments that are part of the sums and not of a set.
 */
export function selectCustomers(filter: PaymentFilter, { days }: SplitTime): Sql {
  const isWhole = !merchantsOf(filter);
  const levels = isWhole ? (["month", "day"] as const) : (["year", "month"] as const);
  const all = days ? splitDays(days.start, days.end, [...levels, "day"]) : [];
  const spans = filter.states?.includes("succeeded") === false ? [] : all;
  const ofAssets = filter.chains ?? filter.assets;
  const acceptsSet = ofAssets ? sql`s.asset <> '' and ${acceptsAsset(filter, sql`s.asset`)}` : sql`s.asset = ''`;
  // The sets of years do not have the month of `sets_before`, and no set has what comes after.
  const newest = sql`
    union all select 'month', greatest(r."from", date_trunc('month', a.sets_before::timestamp)::date),
      least(r.before, (date_trunc('month', a.sets_before::timestamp) + interval '1 month')::date)
    from ranges r cross join account a where r.span = 'year'`;
  // Only succeeded payments have a customer, so without a filter by asset each of them counts.
  const ofDays = sql`
    union all select n.customer from (
      select ${ofAssets ? sql`unnest(s.kinds) as kind,` : sql``} unnest(s.customers) as customer
      from ranges r cross join account a cross join merchants m cross join lateral (
        select s.kinds, s.customers from summed_payment s where s.owner = m.id and s.day < r.before
          and s.day >= case r.span when 'day' then r."from" else greatest(r."from", a.sets_before) end
        offset 0
      ) s
    ) n where n.customer is not null ${ofAssets ? sql`and ${isOfKind(sql`n.kind`)}` : sql``}`;
  return sql`
    ranges as (select * from ${rangesOf(spans)}),
    known as materialized (
      select s.chunk, bit_or(s.bits) as bits
      from (select * from ranges r ${isWhole ? sql`` : newest}) r cross join ${ownersOf(filter)} o
      cross join lateral (
        select s.chunk, s.bits from customer_set s where s.owner = o.id and s.span = r.span
          and s.starts_on >= r."from" and s.starts_on < r.before and ${acceptsSet} offset 0
      ) s group by s.chunk
    ), counted (number) as (
      select k.customer from kept k where k.customer is not null ${isWhole ? sql`` : ofDays}
    )`;
}

/**
 * SQL: the number of different customers among the numbers of `counted` and `others` that no set of `known` has. It collects 64
 * customers in the bits of a number, the first in the highest, which is faster than to sort the customers.
 */
export const countUnknown = (others: Sql) => sql`(
  select coalesce(sum(bit_count(w.bits::bit(64) & ~coalesce(substring(k.bits from w.first + 1 for 64), 0::bit(64)))), 0)::bigint
  from (
    select word * 64 / ${sql.lit(CHUNK)} as chunk, word * 64 % ${sql.lit(CHUNK)} as first,
      bit_or(1::bigint << 63 - number % 64) as bits
    from (select number, number / 64 as word from (select number from counted union all ${others}) n) n group by word
  ) w left join known k on k.chunk = w.chunk)`;

/** Characters of each end of a text that an index of trigrams looks up. LIKE takes a time that grows with the text and with the pattern. */
const LOOKED_UP = 16;

/** SQL: texts of `s` contain both ends of a text in lower case. References often begin alike. */
function containsEnds(text: string): Sql {
  const isLike = (end: Sql) => sql`s.texts like '%' || regexp_replace(${end}, '([\\\\%_])', '\\\\\\1', 'g') || '%'`;
  const first = isLike(sql`left(lower(${text}), ${sql.lit(LOOKED_UP)})`);
  return text.length <= LOOKED_UP
    ? first
    : sql`${first} and ${isLike(sql`right(lower(${text}), ${sql.lit(LOOKED_UP)})`)}`;
}

const ownersOf = (filter: PaymentFilter): Sql => (merchantsOf(filter) ? sql`merchants` : sql`account`);

const rangesOf = (spans: readonly SpanRange[]): Sql => sql`
  unnest(${spans.map(({ span }) => span)}::text[], ${spans.map(({ from }) => from)}::date[],
    ${spans.map(({ before }) => before)}::date[]) r (span, "from", before)`;
