import { type RawBuilder, sql } from "kysely";
import type { Db, Verification } from "./tables.ts";

/** A due row, with the number of times its job has been enqueued. */
export type DueRow = { id: string; retry: number };
/** A due attempt, with its chain and the way it is verified. */
export type DueAttempt = DueRow & { chain: string; verification: Verification };
export type DueTransfer = DueRow & { chain: string; smart_wallet: boolean };
type DueOf = { payment: DueRow; attempt: DueAttempt };

const returned = {
  payment: sql`id, due_retries as retry`,
  attempt: sql`id, due_retries as retry, chain, verification`,
} as const;

type Args = { now: Date; limit: number };

/** The columns by which due rows are divided when more are due than one sweep takes. An index begins with them. */
const sharedBy = {
  payment: [sql.ref("merchant_id")],
  attempt: [sql.ref("chain"), sql.ref("merchant_id")],
} as const satisfies Record<string, readonly RawBuilder<unknown>[]>;
type Shared = keyof typeof sharedBy;

/**
 * Takes rows whose due time has passed, oldest first. The same statement sets a later due time (exponential backoff up to
 * one minute), so that concurrent sweeps never take the same row.
 *
 * When the oldest rows alone reach the limit, the same number of rows is taken in addition, in equal shares: per merchant,
 * and for attempts per chain and merchant. One merchant's backlog therefore never delays the others.
 */
export async function takeDue<T extends Shared>(db: Db, args: Args & { table: T }): Promise<DueOf[T][]> {
  const { rows: oldest } = await selectOldestDue(args).execute(db);
  if (oldest.length < args.limit) return oldest;
  const { rows: shares } = await takeEqualShares(args).execute(db);
  return [...oldest, ...shares];
}

/** Builds the statement for the oldest rows. Exported for a test of its query plan. */
export function selectOldestDue<T extends Shared>({ table, ...args }: Args & { table: T }) {
  const found = sql`select id from ${sql.table(table)} where due_at <= ${args.now} order by due_at limit ${args.limit}`;
  return sql<DueOf[T]>`${push(table, args, found)} returning ${returned[table]}`;
}

/** Builds the statement for equal shares: it skips from key to key through the index and reads only the rows it takes. */
export function takeEqualShares<T extends Shared>({ table, ...args }: Args & { table: T }) {
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
    ), due_keys as (
      select ${key} from keys where exists (
        select from ${rows} r where (${of("r")}) = (${of("keys")}) and r.due_at <= ${args.now})
    )
    select id from (
      select r.id, r.due_at, row_number() over (partition by ${of("due_keys")} order by r.due_at) as place
      from due_keys cross join lateral (
        select id, due_at from ${rows} r where (${of("r")}) = (${of("due_keys")}) and r.due_at <= ${args.now}
        order by due_at limit (select least(${args.limit}, 1 + ${10 * args.limit} / count(*)) from due_keys)
      ) r
    ) ranked order by place, due_at limit ${args.limit}`;
  return sql<DueOf[T]>`${push(table, args, found)} returning ${returned[table]}`;
}

/** Takes at most `limit` due transfers of each chain. `smart_wallet` is true when the payer is a contract wallet. */
export async function takeDueTransfers(db: Db, args: Args & { chains: readonly string[] }): Promise<DueTransfer[]> {
  const { rows } = await selectDueTransfers(args).execute(db);
  return rows;
}

/** Builds the statement of `takeDueTransfers`. Exported for a test of its query plan. */
export function selectDueTransfers(args: Args & { chains: readonly string[] }) {
  const found = sql`
    select f.id from unnest(${args.chains}::text[]) as c (chain) cross join lateral (
      select id from transfer t where t.chain = c.chain and t.due_at <= ${args.now} order by due_at limit ${args.limit}
    ) f`;
  return sql<DueTransfer>`${push("transfer", args, found)} returning id, due_retries as retry, chain, smart_wallet`;
}

/** Builds an update that postpones the selected rows, except those that are no longer due or locked by another sweep. */
function push(table: string, args: Args, found: RawBuilder<unknown>) {
  return sql`
    update ${sql.table(table)} set due_retries = due_retries + 1,
      due_at = ${args.now}::timestamptz + least(60, power(2, least(due_retries, 6))) * interval '1 second'
    where id in (
      select id from ${sql.table(table)} where id = any(array(${found})) and due_at <= ${args.now}
      for update skip locked
    )`;
}

/**
 * Takes the chains whose watcher's lease has run out, each with the next block to read. Skips a chain whose cursor a transaction has
 * locked: a worker that hangs in it would keep the other chains, and whatever the sweep enqueues after them, for 15 s.
 */
export async function takeDueChains(
  db: Db,
  args: { chains: readonly string[] },
): Promise<{ chain: string; block: number; retry: number }[]> {
  const { rows } = await sql<{ chain: string; block: number; retry: number }>`
    update chain_cursor set due_retries = due_retries + 1, due_at = clock_timestamp() + interval '2 seconds'
    where chain in (
      select chain from chain_cursor where due_at <= clock_timestamp() and chain = any(${args.chains})
      order by chain for no key update skip locked)
    returning chain, number + 1 as block, due_retries as retry`.execute(db);
  return rows;
}
