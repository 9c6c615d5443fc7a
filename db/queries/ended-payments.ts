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
    insert into summed_account (account_id, mode) select ${account_id}, ${mode}
    where not exists (select from summed_account where account_id = ${account_id} and mode = ${mode})
    on conflict do nothing`.execute(db);
}

/**
 * Locks an account's sums until the end of the transaction. Returns false when another worker sums its payments. A read of a
 * list takes no lock and never waits.
 */
export async function lockSums(db: Db, { account_id, mode }: SummedAccount): Promise<boolean> {
  const row = await db
    .selectFrom("summed_account")
    .select("customers")
    .where("account_id", "=", account_id)
    .where("mode", "=", mode)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Adds payments that have ended to the sums of their account and merchant, and removes them from `ended_payment`, in one
 * statement. The caller has locked the account's sums. Returns the number of payments. Rows of `ended_payment` whose payments
 * have not ended stay: a payment that ends meanwhile keeps its row.
 */
export async function addToSums(db: Db, { account_id, mode }: SummedAccount, limit: number): Promise<number> {
  const owner = sql`${account_id} as account_id, ${mode} as mode`;
  const chunk = sql.lit(CHUNK);
  const { rows } = await sql<{ count: number }>`
    with due as materialized (
      select p.id, p.merchant_id, p.state, coalesce(p.asset, '') as asset, p.unit, p.value, o.payer,
        (p.created_at at time zone 'UTC')::date as day
      from ended_payment e join payment p on p.id = e.payment_id and ${hasEnded}
      left join payment_option o on o.id = p.option_id and p.state = 'succeeded'
      where e.account_id = ${account_id} and e.mode = ${mode} order by e.payment_id limit ${limit}
    ), ended as (
      delete from ended_payment e using due where (e.account_id, e.mode, e.payment_id) = (${account_id}, ${mode}, due.id)
      returning due.*
    ), placed as materialized (
      select s.merchant_id, d.span, d.starts_on, e.state, e.asset, e.unit, e.value, e.payer from ended e
      cross join lateral (values (e.merchant_id), ('')) s (merchant_id)
      cross join lateral (values ('day', e.day), ('month', date_trunc('month', e.day::timestamp)::date)) d (span, starts_on)
    ), summed as (
      insert into payment_sum (account_id, mode, merchant_id, span, starts_on, state, asset, unit, count, value)
      select ${owner}, merchant_id, span, starts_on, state, asset, unit, count(*), sum(value) from placed
      group by merchant_id, span, starts_on, state, asset, unit
      on conflict (account_id, mode, merchant_id, span, starts_on, state, asset, unit)
        do update set count = payment_sum.count + excluded.count, value = payment_sum.value + excluded.value
    ), payer as materialized (
      select p.payer, c.number from (select distinct payer from ended where payer is not null) p
      left join customer c on (c.account_id, c.mode, c.payer) = (${account_id}, ${mode}, p.payer)
    ), added as (
      insert into customer (account_id, mode, payer, number)
      select ${owner}, p.payer, s.customers + row_number() over (order by p.payer) - 1 from payer p
      cross join summed_account s where (s.account_id, s.mode) = (${account_id}, ${mode}) and p.number is null
      returning payer, number
    ), numbered as materialized (
      select payer, number from payer where number is not null union all select payer, number from added
    ), customers as (
      insert into customer_set (account_id, mode, merchant_id, span, starts_on, asset, chunk, bits)
      select ${owner}, p.merchant_id, p.span, p.starts_on, a.asset, n.number / ${chunk},
        bit_or(set_bit(0::bit(${chunk}), n.number % ${chunk}, 1))
      from placed p join numbered n on n.payer = p.payer
      join lateral (values (p.asset), ('')) a (asset) on a.asset <> '' or p.merchant_id = ''
      group by p.merchant_id, p.span, p.starts_on, a.asset, n.number / ${chunk}
      on conflict (account_id, mode, merchant_id, span, starts_on, asset, chunk)
        do update set bits = customer_set.bits | excluded.bits
    ), counted as (
      update summed_account set customers = customers + (select count(*) from added)
      where account_id = ${account_id} and mode = ${mode} and exists (select from added)
    )
    select count(*) as count from ended`.execute(db);
  return rows[0]?.count ?? 0;
}
