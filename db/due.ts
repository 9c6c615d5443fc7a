import { type RawBuilder, sql } from "kysely";
import type { Db, Verification } from "./tables.ts";

/** A row whose job is owed: the how-manieth ring this is. */
export type DueRow = { id: string; again: number };
/** A due attempt, with how it is to be verified. */
export type DueAttempt = DueRow & { verification: Verification };
export type DueTransfer = DueRow & { chain: string; isWallet: boolean };
type DueOf = { payment: DueRow; attempt: DueAttempt };

const returned = {
  payment: sql`id, due_try as again`,
  attempt: sql`id, due_try as again, verification`,
} as const;

type Args = { now: Date; limit: number; graceMs?: number };

/** What the rows of a table are shared out by when more are due than one sweep takes; an index begins with it. */
const sharedBy = {
  payment: [sql.ref("merchant_id")],
  attempt: [sql.ref("chain"), sql.ref("merchant_id")],
} as const satisfies Record<string, readonly RawBuilder<unknown>[]>;
type Shared = keyof typeof sharedBy;

/**
 * Rows whose due time has passed. Each is pushed to a later due time in the same statement, longer every time up to a
 * minute, so that several sweeps never find the same row and a row in trouble is not rung for ever more often.
 * When the oldest alone fill the limit, as many are taken again in equal shares: of each merchant, and for attempts of
 * each chain and merchant. A flood of one never delays the others.
 * @param graceMs how long past its due time a row is left to the job that was rung for it
 */
export async function takeDue<T extends Shared>(db: Db, args: Args & { table: T }): Promise<DueOf[T][]> {
  const { rows: oldest } = await takeOldest(args).execute(db);
  if (oldest.length < args.limit) return oldest;
  const { rows: shares } = await takeShares(args).execute(db);
  return [...oldest, ...shares];
}

/** The statement for the oldest rows, for tests of its plan too. */
export function takeOldest<T extends Shared>({ table, ...args }: Args & { table: T }) {
  const found = sql`select id from ${sql.table(table)} where due_at <= ${until(args)} order by due_at limit ${args.limit}`;
  return sql<DueOf[T]>`${push(table, args, found)} returning ${returned[table]}`;
}

/** The statement for equal shares: it steps from key to key through the index and reads only what it takes. */
export function takeShares<T extends Shared>({ table, ...args }: Args & { table: T }) {
  const rows = sql.table(table);
  const key = sql.join([...sharedBy[table]]);
  const of = (name: string) => sql.join(sharedBy[table].map((column) => sql`${sql.ref(name)}.${column}`));
  const found = sql`
    with recursive keys as (
      (select ${key} from ${rows} where due_at is not null order by ${key} limit 1)
      union all
      select next.* from keys cross join lateral (
        select ${key} from ${rows} r where r.due_at is not null and (${of("r")}) > (${of("keys")}) order by ${key} limit 1
      ) next
    ), owed as (
      select ${key} from keys where exists (
        select from ${rows} r where (${of("r")}) = (${of("keys")}) and r.due_at <= ${until(args)})
    )
    select id from (
      select r.id, r.due_at, row_number() over (partition by ${of("owed")} order by r.due_at) as place
      from owed cross join lateral (
        select id, due_at from ${rows} r where (${of("r")}) = (${of("owed")}) and r.due_at <= ${until(args)}
        order by due_at limit (select least(${args.limit}, 1 + ${10 * args.limit} / count(*)) from owed)
      ) r
    ) ranked order by place, due_at limit ${args.limit}`;
  return sql<DueOf[T]>`${push(table, args, found)} returning ${returned[table]}`;
}

/** Due transfers, each with the chain it is to be carried on, and whether its payer is code: at most `limit` of each of these chains. */
export async function takeDueTransfers(db: Db, args: Args & { chains: readonly string[] }): Promise<DueTransfer[]> {
  const { rows } = await takeTransfers(args).execute(db);
  return rows;
}

/** The statement of it, for tests of its plan. */
export function takeTransfers(args: Args & { chains: readonly string[] }) {
  const found = sql`
    select f.id from unnest(${args.chains}::text[]) as c (chain) cross join lateral (
      select id from transfer t where t.chain = c.chain and t.due_at <= ${until(args)} order by due_at limit ${args.limit}
    ) f`;
  return sql<DueTransfer>`${push("transfer", args, found)} returning id, due_try as again, chain, smart_wallet as "isWallet"`;
}

function until({ now, graceMs = 0 }: Args) {
  return new Date(now.getTime() - graceMs);
}

/** Pushes the rows of a selection that are still due and that no other sweep has in its hands. */
function push(table: string, args: Args, found: RawBuilder<unknown>) {
  return sql`
    update ${sql.table(table)} set due_try = due_try + 1,
      due_at = ${args.now}::timestamptz + least(60, power(2, least(due_try, 6))) * interval '1 second'
    where id in (
      select id from ${sql.table(table)} where id = any(array(${found})) and due_at <= ${until(args)}
      for update skip locked
    )`;
}

/** Which of these chains' watchers have not been heard of, and the block each waits for. */
export async function takeDueChains(
  db: Db,
  args: { chains: readonly string[] },
): Promise<{ chain: string; block: number; again: number }[]> {
  const { rows } = await sql<{ chain: string; block: number; again: number }>`
    update chain_cursor set due_try = due_try + 1, due_at = clock_timestamp() + interval '2 seconds'
    where due_at <= clock_timestamp() and chain = any(${args.chains})
    returning chain, number + 1 as block, due_try as again`.execute(db);
  return rows;
}
