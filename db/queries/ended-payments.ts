import { type RawBuilder, sql } from "kysely";
import type { Db, Mode, Pool } from "../tables.ts";

/** The customers of one row of `customer_set`. */
export const CHUNK = 32_768;

/** Payments of one row of `summed_payment`. With more, a row would have nearly every trigram, and its index would find them all. */
const PER_ROW = 100;

export type SummedAccount = { account_id: string; mode: Mode };

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

/** SQL: `canonicalUnit` of the unit of a payment `p`. Merchants may write one unit in many ways, which are one kind. */
const canonicalUnit = sql`case when p.unit ~* '^caip19/eip155:' then lower(p.unit) else p.unit end`;

/** SQL: a query named `account` with the row of an account. */
const selectAccount = ({ account_id, mode }: SummedAccount) => sql`
  account as materialized (
    select id, customers, sets_before, date_trunc('month', sets_before::timestamp)::date as years_before
    from summed_owner where account_id = ${account_id} and mode = ${mode} and merchant_id = ''
  )`;

/**
 * SQL: the payments `n` of a query `e` with their ids. Here and below, `offset 0` makes Postgres find the rows of each
 * payment by an index, however few payments it expects: after a peak its statistics are old.
 */
const selectPayments = (from: RawBuilder<unknown>) => sql`
  from ${from} cross join lateral (
    select p.id, p.merchant_id, p.state, coalesce(p.asset, '') as asset, ${canonicalUnit} as unit, p.value, p.reference_id,
      p.created_at, p.option_id
    from payment p where p.id = e.payment_id offset 0
  ) n`;

/**
 * Adds payments that have ended to the sums of their account and merchants, and removes them from `ended_payment`. The caller
 * has locked the account's sums. Returns the number of payments, and the UTC day of the newest of them.
 */
export async function addToSums(
  db: Db,
  { account_id, mode }: SummedAccount,
  limit: number,
): Promise<{ count: number; newest: string | null }> {
  const rows = await db
    .selectFrom("ended_payment")
    .select("payment_id")
    .where("account_id", "=", account_id)
    .where("mode", "=", mode)
    .orderBy("payment_id")
    .limit(limit)
    .execute();
  const ids = rows.map((row) => row.payment_id);
  await insertOwnersAndKinds(db, { account_id, mode }, ids);
  return { count: ids.length, newest: await addPayments(db, { account_id, mode }, ids) };
}

async function insertOwnersAndKinds(db: Db, account: SummedAccount, ids: readonly string[]): Promise<void> {
  const { account_id, mode } = account;
  await sql`
    with ${selectAccount(account)}, next as materialized (
      select distinct n.merchant_id, n.state, n.asset, n.unit
      ${selectPayments(sql`unnest(${ids}::text[]) e (payment_id)`)}
    ), owners as (
      insert into summed_owner (account_id, mode, merchant_id)
      select distinct ${account_id}, ${mode}, n.merchant_id from next n
      where not exists (
        select from summed_owner where (account_id, mode, merchant_id) = (${account_id}, ${mode}, n.merchant_id) offset 0)
    )
    insert into summed_kind (owner, state, asset, unit)
    select distinct a.id, n.state, n.asset, n.unit from account a cross join next n
    where not exists (
      select from summed_kind k where (k.owner, k.state, k.asset, k.unit) = (a.id, n.state, n.asset, n.unit) offset 0)`.execute(
    db,
  );
}

/** Returns the UTC day of the newest of these payments, whose owners and kinds have rows. */
async function addPayments(db: Db, account: SummedAccount, ids: readonly string[]): Promise<string | null> {
  const { account_id, mode } = account;
  const chunk = sql.lit(CHUNK);
  const { rows } = await sql<{ newest: string | null }>`
    with ${selectAccount(account)}, ended as (
      delete from ended_payment
      where account_id = ${account_id} and mode = ${mode} and payment_id = any(${ids}::text[])
      returning payment_id
    ), due as materialized (
      select n.*, m.id as owner, k.id as kind, o.payer, d.day, date_trunc('month', d.day::timestamp)::date as month,
        date_trunc('year', d.day::timestamp)::date as year, o.payer is not null and c.number is null as is_new,
        case when o.payer is not null then coalesce(c.number, a.customers - 1 + dense_rank() over (
          partition by o.payer is not null and c.number is null order by o.payer))::integer end as number
      ${selectPayments(sql`ended e`)} cross join account a
      cross join lateral (select (n.created_at at time zone 'UTC')::date as day) d
      cross join lateral (
        select id from summed_owner where (account_id, mode, merchant_id) = (${account_id}, ${mode}, n.merchant_id) offset 0
      ) m
      cross join lateral (
        select id from summed_kind where (owner, state, asset, unit) = (a.id, n.state, n.asset, n.unit) offset 0
      ) k
      left join lateral (
        select payer from payment_option where id = n.option_id and n.state = 'succeeded' offset 0) o on true
      left join lateral (select number from customer where owner = a.id and payer = o.payer offset 0) c on true
    ), summed as (
      insert into payment_sum (owner, span, starts_on, kind, count, value)
      select s.owner, d.span, d.starts_on, e.kind, count(*), sum(e.value) from due e cross join account a
      cross join lateral (values (e.owner), (a.id)) s (owner)
      cross join lateral (values ('day', e.day), ('month', e.month), ('year', e.year)) d (span, starts_on)
      group by 1, 2, 3, 4
      on conflict (owner, span, starts_on, kind)
        do update set count = payment_sum.count + excluded.count, value = payment_sum.value + excluded.value
    ), added as (
      insert into customer (owner, payer, number)
      select distinct a.id, e.payer, e.number from due e cross join account a where e.is_new
      returning number
    ), kept as (
      insert into summed_payment (owner, day, kinds, times, amounts, customers, texts)
      select e.owner, e.day, array_agg(e.kind), array_agg(e.created_at), array_agg(e.value), array_agg(e.number),
        case when count(e.reference_id) > 0
          then string_agg(translate(lower(coalesce(e.reference_id, '')), e'\n', ' '), e'\n') end
      from (select *, (row_number() over (partition by owner, day) - 1) / ${sql.lit(PER_ROW)} as part from due) e
      group by e.owner, e.day, e.part
    ), customers as (
      insert into customer_set (owner, span, starts_on, asset, chunk, bits)
      select s.owner, s.span, s.starts_on, f.asset, e.number / ${chunk},
        bit_or(set_bit(0::bit(${chunk}), e.number % ${chunk}, 1))
      from due e cross join account a
      join lateral (values (a.id, 'day', e.day, true), (a.id, 'month', e.month, true),
        (e.owner, 'month', e.month, e.day < a.sets_before), (e.owner, 'year', e.year, e.month < a.years_before)
      ) s (owner, span, starts_on, is_due) on s.is_due
      cross join lateral (values (e.asset), ('')) f (asset)
      where e.number is not null
      group by 1, 2, 3, 4, 5
      on conflict (owner, span, starts_on, asset, chunk) do update set bits = customer_set.bits | excluded.bits
    ), counted as (
      update summed_owner o set customers = o.customers + (select count(*) from added) from account a
      where o.id = a.id and exists (select from added)
    )
    select max(day)::text as newest from due`.execute(db);
  return rows[0]?.newest ?? null;
}
