import { sql } from "kysely";
import type { Db } from "../tables.ts";
import { CHUNK, type SummedAccount } from "./ended-payments.ts";

/** Payments and merchants of one statement. */
const [MOST_PAYMENTS, MOST_MERCHANTS] = [100_000, 100];
/** Customers of a part of a set. A part is short, so it is built faster than the whole from many customers. */
const PART = 512;

type Settled = { id: number; from: string; before: string };
type KeptRow = { owner: number; day: string; number: number; payments: number };

/**
 * Adds the customers of the days before `before` to the sets of months of an account's merchants, and those of the months that
 * have ended by then to the sets of years. The caller has locked the account's sums: no payment is added meanwhile. Each
 * statement reads a part of the payments, so that it takes no longer with more of them. A set may get a customer twice.
 */
export async function addToMerchantSets(db: Db, { account_id, mode }: SummedAccount, before: string): Promise<void> {
  const { rows } = await sql<Settled>`
    select id, sets_before::text as "from", ${before} as before from summed_owner
    where account_id = ${account_id} and mode = ${mode} and merchant_id = '' and sets_before < ${before}::date`.execute(
    db,
  );
  const [account] = rows;
  if (!account) return;
  const merchants = await db
    .selectFrom("summed_owner")
    .select("id")
    .where("account_id", "=", account_id)
    .where("mode", "=", mode)
    .where("merchant_id", "<>", "")
    .execute();
  for (let n = 0; n < merchants.length; n += MOST_MERCHANTS) {
    const owners = merchants.slice(n, n + MOST_MERCHANTS).map(({ id }) => id);
    for (const slice of slicePayments(await listKeptRows(db, account, owners))) await addToMonths(db, slice);
    await addToYears(db, account, owners);
  }
  await sql`update summed_owner set sets_before = ${before}::date where id = ${account.id}`.execute(db);
}

async function listKeptRows(db: Db, { from, before }: Settled, owners: readonly number[]): Promise<KeptRow[]> {
  const { rows } = await sql<KeptRow>`
    select s.owner, s.day::text, s.number, cardinality(s.kinds) as payments from unnest(${owners}::integer[]) m (id)
    cross join lateral (
      select * from summed_payment where owner = m.id and day >= ${from}::date and day < ${before}::date offset 0
    ) s order by 1, 2, 3`.execute(db);
  return rows;
}

/** Divides rows into parts with at most `MOST_PAYMENTS` payments. */
function slicePayments(rows: readonly KeptRow[]): KeptRow[][] {
  const slices: KeptRow[][] = [];
  let payments = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    payments += row.payments;
    if (payments > MOST_PAYMENTS) {
      slices.push([]);
      payments = row.payments;
    }
    slices.at(-1)?.push(row);
  }
  return slices;
}

/** Builds the set of each asset from its parts, and that of all assets from those. */
async function addToMonths(db: Db, rows: readonly KeptRow[]): Promise<void> {
  const [chunk, part] = [sql.lit(CHUNK), sql.lit(PART)];
  await sql`
    with customers as (
      select s.owner, date_trunc('month', s.day::timestamp)::date as month, s.kind, s.customer
      from unnest(${rows.map(({ owner }) => owner)}::integer[], ${rows.map(({ day }) => day)}::date[],
        ${rows.map(({ number }) => number)}::bigint[]) r (owner, day, number)
      cross join lateral (
        select owner, day, unnest(kinds) as kind, unnest(customers) as customer from summed_payment
        where owner = r.owner and day = r.day and number = r.number offset 0
      ) s where s.customer is not null
    ), parts as (
      select owner, month, kind, customer / ${chunk} as chunk, customer % ${chunk} / ${part} as part,
        bit_or(set_bit(0::bit(${part}), customer % ${part}, 1)) as bits
      from customers group by 1, 2, 3, 4, 5
    ), sets as materialized (
      select p.owner, p.month, k.asset, p.chunk, bit_or(p.bits::bit(${chunk}) >> p.part * ${part}) as bits
      from parts p join summed_kind k on k.id = p.kind group by 1, 2, 3, 4
    )
    insert into customer_set (owner, span, starts_on, asset, chunk, bits)
    select owner, 'month', month, asset, chunk, bits from sets
    union all select owner, 'month', month, '', chunk, bit_or(bits) from sets group by owner, month, chunk
    ${intoSets}`.execute(db);
}

async function addToYears(db: Db, { from, before }: Settled, owners: readonly number[]): Promise<void> {
  await sql`
    insert into customer_set (owner, span, starts_on, asset, chunk, bits)
    select s.owner, 'year', date_trunc('year', s.starts_on::timestamp)::date, s.asset, s.chunk, bit_or(s.bits)
    from unnest(${owners}::integer[]) m (id) join customer_set s on s.owner = m.id and s.span = 'month'
      and s.starts_on >= date_trunc('month', ${from}::date::timestamp)::date
      and s.starts_on < date_trunc('month', ${before}::date::timestamp)::date
    group by 1, 3, 4, 5 ${intoSets}`.execute(db);
}

const intoSets = sql`
  on conflict (owner, span, starts_on, asset, chunk) do update set bits = customer_set.bits | excluded.bits`;
