import { type RawBuilder, sql } from "kysely";
import type { Db } from "../tables.ts";
import type { PaymentFilter } from "./payment-filters.ts";
import { selectSingle } from "./single-payments.ts";
import { splitTime } from "./sum-spans.ts";
import { countUnknown, selectCustomers, selectKept, selectOwners, selectSums } from "./summed-payments.ts";

/** Sums over payments: the revenue of succeeded ones by unit, the number of payments, and the number of distinct payers. */
export type PaymentTotals = {
  revenue: { unit: string; value: bigint }[];
  transactions: number;
  customers: number;
};

/**
 * Returns sums over all payments of a filter. Reads the sums of whole days, the arrays of `summed_payment` for the first and last
 * day, and one by one the payments that are open and those that have ended since sums were last added to. A filter by reference
 * reads the rows of these arrays that an index of trigrams finds. One by metadata reads every payment that it selects, which takes
 * about ten seconds per million.
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

const columns = sql`p.unit, p.state = 'succeeded' as succeeded, p.value, p.option_id`;

const payersOfMany = sql`o.payer from single s join payment_option o on o.id = s.option_id`;
/** Reads each option by its index, however many payments Postgres expects. */
const payersOfFew = sql`(select o.payer from payment_option o where o.id = s.option_id) as payer from single s`;

/** One statement reads the sums and the payments in one snapshot, so a worker that adds to the sums meanwhile changes nothing. */
function selectTotals(filter: PaymentFilter): RawBuilder<Sum> {
  const all = splitTime(filter.from, filter.before);
  // Sums know no texts. Metadata are only on the payments themselves.
  const time = filter.reference === undefined && !filter.metadata ? all : { ...all, edges: [all.all], days: undefined };
  const kept = filter.metadata ? [] : time.edges;
  return sql<Sum>`
    with recursive ${selectOwners(filter)}, ${selectSingle(filter, columns)}, ${selectKept(filter, kept)},
    ${selectCustomers(filter, time)}, payer as (
      select p.payer, (select c.number from account a join customer c on c.owner = a.id and c.payer = p.payer) as number
      from (select distinct ${filter.metadata ? payersOfMany : payersOfFew} where s.succeeded) p where p.payer is not null
    )
    select unit, succeeded, sum(count)::bigint as count, sum(amount) as value from (
      select k.unit, k.state = 'succeeded' as succeeded, s.count, s.amount from (
        ${selectSums(time)}
        union all select kind, count(*), sum(amount) from kept group by kind
      ) s join summed_kind k on k.id = s.kind
      union all select unit, succeeded, 1, value from single
    ) s group by 1, 2 having sum(count) > 0
    union all
    select null, true, (select coalesce(sum(bit_count(bits)), 0) from known)::bigint
      + (select count(*) from payer where number is null)
      + ${countUnknown(sql`select number from payer where number is not null`)}, 0
    order by 1`;
}
