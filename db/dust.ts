import { type Selectable, sql } from "kysely";
import { isBookable } from "./failed-bookings.ts";
import type { Db, Tables } from "./tables.ts";

/** The unmatched deposits of one asset and day that are each below the asset's dust amount. `day` is YYYY-MM-DD, UTC. */
export type DustRow = Selectable<Tables["dust"]>;

/**
 * Adds deposits to the row of their asset and day, or, when that day is in the ledger already, to the first day after it
 * that is not. Returns the id of the row.
 */
export async function addDust(
  db: Db,
  dust: { chain: string; asset: string; day: string; amount: bigint; transfers: number; lastBlock: number },
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into dust as d (chain, asset, day, amount, transfers, last_block)
    select ${dust.chain}, ${dust.asset}, greatest(${dust.day}::date, max(day) + 1),
      ${dust.amount}::numeric, ${dust.transfers}::integer, ${dust.lastBlock}::bigint
    from dust where chain = ${dust.chain} and asset = ${dust.asset} and group_id is not null
    on conflict (chain, asset, day) do update
    set amount = d.amount + excluded.amount, transfers = d.transfers + excluded.transfers,
      last_block = greatest(d.last_block, excluded.last_block)
    where d.group_id is null
    returning id`.execute(db);
  if (!rows[0]) throw new Error(`the dust of ${dust.asset} was booked at this moment`);
  return rows[0].id;
}

const columns = ["id", "chain", "asset", "amount", "transfers", "last_block", "group_id"] as const;
const day = sql<string>`day::text`.as("day");

/** Days of a chain that are not in the ledger yet, oldest first; without those that could not be booked. */
export async function listOpenDust(db: Db, chain: string): Promise<DustRow[]> {
  return db
    .selectFrom("dust")
    .select([...columns, day])
    .where("chain", "=", chain)
    .where("group_id", "is", null)
    .where(isBookable("dust", { chain: "dust.chain", subject: sql`dust.asset || '/' || dust.day::text` }))
    .orderBy("dust.day")
    .execute();
}

/** Those of some days that are still not in the ledger, as they are now; nothing is added to them until the commit. */
export async function lockDust(db: Db, days: readonly Pick<DustRow, "id">[]): Promise<DustRow[]> {
  return db
    .selectFrom("dust")
    .select([...columns, day])
    .where(sql<boolean>`id = any(${days.map(({ id }) => id)})`)
    .where("group_id", "is", null)
    .orderBy("id")
    .forUpdate()
    .execute();
}

/** Names the ledger group that a day's dust is booked by; the caller has locked the day. */
export async function closeDust(db: Db, args: { id: number; subject: string }): Promise<void> {
  await sql`
    update dust set group_id = g.id from ledger_group g
    where dust.id = ${args.id} and g.kind = 'dust' and g.subject = ${args.subject}`.execute(db);
}

/** The time of the first remembered block at or above each height; undefined where none is remembered. */
export async function listBlockTimes(
  db: Db,
  args: { chain: string; numbers: readonly number[] },
): Promise<Map<number, Date>> {
  const { rows } = await sql<{ number: number; at: Date | null }>`
    select n.number, (
      select at from chain_block b where b.chain = ${args.chain} and b.number >= n.number order by b.number limit 1
    ) as at from unnest(${args.numbers}::bigint[]) n (number)`.execute(db);
  return new Map(rows.flatMap(({ number, at }) => (at ? [[number, at] as const] : [])));
}
