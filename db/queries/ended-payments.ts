import { sql } from "kysely";
import { openPaymentStates } from "../states.ts";
import type { Db, Mode, Pool } from "../tables.ts";

/** The customers of one row of `customer_set`. */
export const CHUNK = 32_768;

export type SummedAccount = { account_id: string; mode: Mode };

/**
 * SQL: the row `e` of `ended_payment` is of the payment `p`, which has ended. The api's login may insert rows, and rows that
 * others than `moveRows` have inserted may be of payments that are open, or of other accounts.
 */
export const hasEnded = sql<boolean>`
  p.account_id = e.account_id and p.mode = e.mode and p.state <> all(${openPaymentStates})`;

/** Returns the accounts with at least this many payments that have ended and are not in the sums. */
export async function listAccountsToSum(db: Db, { atLeast }: { atLeast: number }): Promise<SummedAccount[]> {
  return db
    .selectFrom("ended_payment")
    .select(["account_id", "mode"])
    .groupBy(["account_id", "mode"])
    .having((e) => e.fn.countAll(), ">=", atLeast)
    .orderBy("account_id")
    .orderBy("mode")
    .execute();
}

/**
 * Inserts the row that `lockSums` locks, unless the account has one. It has to be committed before, because other workers wait
 * for an insert. The query comes first, because the insert would wait for the worker that changes the row.
 */
export async function insertSummedAccount(db: Pool, { account_id, mode }: SummedAccount): Promise<void> {
  await sql`
    insert into summed_owner (account_id, mode, merchant_id) select ${account_id}, ${mode}, ''
    where not exists (
      select from summed_owner where account_id = ${account_id} and mode = ${mode} and merchant_id = '')
    on conflict do nothing`.execute(db);
}

/**
 * Locks an account's sums until the end of the transaction. Returns false when another worker sums its payments. A read of a
 * list takes no lock and never waits.
 */
export async function lockSums(db: Db, { account_id, mode }: SummedAccount): Promise<boolean> {
  const row = await db
    .selectFrom("summed_owner")
    .select("id")
    .where("account_id", "=", account_id)
    .where("mode", "=", mode)
    .where("merchant_id", "=", "")
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
  return row !== undefined;
}

/** SQL: a query named `account` with the row of an account, and one named `next` with the payments to add to its sums. */
const selectNext = ({ account_id, mode }: SummedAccount, limit: number) => sql`
  account as materialized (
    select id, customers, sets_before, date_trunc('month', sets_before::timestamp)::date as years_before
    from summed_owner where account_id = ${account_id} and mode = ${mode} and merchant_id = ''
  ), next as materialized (
    select p.id, p.merchant_id, p.state, coalesce(p.asset, '') as asset, p.unit, p.value, p.reference_id, p.created_at,
      p.option_id
    from ended_payment e join payment p on p.id = e.payment_id and ${hasEnded}
    where e.account_id = ${account_id} and e.mode = ${mode} order by e.payment_id limit ${limit}
  )`;

/**
 * Adds payments that have ended to the sums of their account and merchants, and removes them from `ended_payment`. The caller
 * has locked the account's sums. Returns the number of payments. Rows of `ended_payment` whose payments have not ended stay: a
 * payment that ends meanwhile keeps its row.
 */
export async function addToSums(db: Db, account: SummedAccount, limit: number): Promise<number> {
  await insertOwnersAndKinds(db, account, limit);
  const { count, newest } = await addPayments(db, account, limit);
  if (newest) await addToMerchantSets(db, account, newest);
  return count;
}

async function insertOwnersAndKinds(db: Db, account: SummedAccount, limit: number): Promise<void> {
  await sql`
    with ${selectNext(account, limit)}, owners as (
      insert into summed_owner (account_id, mode, merchant_id)
      select distinct ${account.account_id}, ${account.mode}, n.merchant_id from next n
      where not exists (select from summed_owner o where o.account_id = ${account.account_id} and o.mode = ${account.mode}
        and o.merchant_id = n.merchant_id)
    )
    insert into summed_kind (owner, state, asset, unit)
    select distinct a.id, n.state, n.asset, n.unit from account a cross join next n
    where not exists (
      select from summed_kind k where (k.owner, k.state, k.asset, k.unit) = (a.id, n.state, n.asset, n.unit))`.execute(
    db,
  );
}

/** Returns also the day before the newest of these payments. A payment whose owner or kind has no row yet stays. */
async function addPayments(db: Db, account: SummedAccount, limit: number) {
  const chunk = sql.lit(CHUNK);
  const { rows } = await sql<{ count: number; newest: string | null }>`
    with ${selectNext(account, limit)}, due as materialized (
      select n.*, m.id as owner, k.id as kind, o.payer, d.day, date_trunc('month', d.day::timestamp)::date as month,
        date_trunc('year', d.day::timestamp)::date as year
      from next n cross join account a
      cross join lateral (select (n.created_at at time zone 'UTC')::date as day) d
      join summed_owner m
        on (m.account_id, m.mode, m.merchant_id) = (${account.account_id}, ${account.mode}, n.merchant_id)
      join summed_kind k on (k.owner, k.state, k.asset, k.unit) = (a.id, n.state, n.asset, n.unit)
      left join payment_option o on o.id = n.option_id and n.state = 'succeeded'
    ), ended as (
      delete from ended_payment e using due
      where (e.account_id, e.mode, e.payment_id) = (${account.account_id}, ${account.mode}, due.id)
      returning due.*
    ), summed as (
      insert into payment_sum (owner, span, starts_on, kind, count, value)
      select s.owner, d.span, d.starts_on, e.kind, count(*), sum(e.value) from ended e cross join account a
      cross join lateral (values (e.owner), (a.id)) s (owner)
      cross join lateral (values ('day', e.day), ('month', e.month), ('year', e.year)) d (span, starts_on)
      group by 1, 2, 3, 4
      on conflict (owner, span, starts_on, kind)
        do update set count = payment_sum.count + excluded.count, value = payment_sum.value + excluded.value
    ), payer as materialized (
      select p.payer, c.number from (select distinct payer from ended where payer is not null) p cross join account a
      left join customer c on (c.owner, c.payer) = (a.id, p.payer)
    ), added as (
      insert into customer (owner, payer, number)
      select a.id, p.payer, a.customers + row_number() over (order by p.payer) - 1 from payer p cross join account a
      where p.number is null
      returning payer, number
    ), numbered as materialized (
      select payer, number from payer where number is not null union all select payer, number from added
    ), kept as (
      insert into summed_payment (owner, day, kinds, times, amounts, customers, texts)
      select e.owner, e.day, array_agg(e.kind), array_agg(e.created_at), array_agg(e.value), array_agg(n.number),
        case when count(e.reference_id) > 0
          then string_agg(translate(lower(coalesce(e.reference_id, '')), e'\n', ' '), e'\n') end
      from ended e left join numbered n on n.payer = e.payer group by e.owner, e.day
    ), customers as (
      insert into customer_set (owner, span, starts_on, asset, chunk, bits)
      select s.owner, s.span, s.starts_on, f.asset, n.number / ${chunk},
        bit_or(set_bit(0::bit(${chunk}), n.number % ${chunk}, 1))
      from ended e join numbered n on n.payer = e.payer cross join account a
      join lateral (values (a.id, 'day', e.day, true), (a.id, 'month', e.month, true),
        (e.owner, 'month', e.month, e.day < a.sets_before), (e.owner, 'year', e.year, e.month < a.years_before)
      ) s (owner, span, starts_on, is_due) on s.is_due
      cross join lateral (values (e.asset), ('')) f (asset)
      group by 1, 2, 3, 4, 5
      on conflict (owner, span, starts_on, asset, chunk) do update set bits = customer_set.bits | excluded.bits
    ), counted as (
      update summed_owner o set customers = o.customers + (select count(*) from added) from account a
      where o.id = a.id and exists (select from added)
    )
    select count(*) as count, (max(day) - 1)::text as newest from ended`.execute(db);
  return rows[0] ?? { count: 0, newest: null };
}

/**
 * Adds the customers of a day, once a newer one has payments, to the sets of months of its merchants, and those of a month to
 * the sets of years.
 */
async function addToMerchantSets(db: Db, { account_id, mode }: SummedAccount, before: string): Promise<void> {
  const own = sql`account_id = ${account_id} and mode = ${mode}`;
  const { rows } = await sql<{ id: number; from: string }>`
    select id, sets_before::text as "from" from summed_owner
    where ${own} and merchant_id = '' and sets_before < ${before}::date`.execute(db);
  const [account] = rows;
  if (!account) return;
  const chunk = sql.lit(CHUNK);
  const add = sql`on conflict (owner, span, starts_on, asset, chunk) do update set bits = customer_set.bits | excluded.bits`;
  const merchants = sql`(select id from summed_owner where ${own} and merchant_id <> '')`;
  await sql`
    insert into customer_set (owner, span, starts_on, asset, chunk, bits)
    select p.owner, 'month', p.month, a.asset, p.number / ${chunk},
      bit_or(set_bit(0::bit(${chunk}), p.number % ${chunk}, 1))
    from (
      select distinct owner, month, kind, number from (
        select s.owner, date_trunc('month', s.day::timestamp)::date as month, unnest(s.kinds) as kind,
          unnest(s.customers) as number
        from ${merchants} m join summed_payment s on s.owner = m.id
          and s.day >= ${account.from}::date and s.day < ${before}::date
      ) p where number is not null
    ) p join summed_kind k on k.id = p.kind cross join lateral (values (k.asset), ('')) a (asset)
    group by 1, 3, 4, 5 ${add}`.execute(db);
  await sql`
    insert into customer_set (owner, span, starts_on, asset, chunk, bits)
    select s.owner, 'year', date_trunc('year', s.starts_on::timestamp)::date, s.asset, s.chunk, bit_or(s.bits)
    from ${merchants} m join customer_set s on s.owner = m.id and s.span = 'month'
      and s.starts_on >= date_trunc('month', ${account.from}::date::timestamp)::date
      and s.starts_on < date_trunc('month', ${before}::date::timestamp)::date
    group by 1, 3, 4, 5 ${add}`.execute(db);
  await sql`update summed_owner set sets_before = ${before}::date where id = ${account.id}`.execute(db);
}
