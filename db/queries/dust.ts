import { type Selectable, sql } from "kysely";
import type { Db, Tables } from "../tables.ts";
import { isBookable } from "./failed-bookings.ts";

/** The sum of one asset's unmatched deposits of one day that are each below the asset's dust amount. `day` is YYYY-MM-DD, UTC. */
export type DustRow = Selectable<Tables["dust"]>;

/**
 * Adds deposits to the row of their asset and day. When that day is booked already, adds them to the first later day that
 * is not. Returns the id of the row.
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
  if (!rows[0]) throw new Error(`another worker booked the dust of ${dust.asset} at the same time`);
  return rows[0].id;
}

const columns = ["id", "chain", "asset", "amount", "transfers", "last_block", "group_id"] as const;
const day = sql<string>`day::text`.as("day");

/** Returns the days of a chain that are not booked yet, oldest first, without those whose booking failed recently. */
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

/** Locks those of these days that are still not booked, and returns them as they are now. */
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

/** Stores the ledger group that books a day's dust. The caller has locked the day. */
export async function closeDust(db: Db, args: { id: number; subject: string }): Promise<void> {
  await sql`
    update dust set group_id = g.id from ledger_group g
    where dust.id = ${args.id} and g.kind = 'dust' and g.subject = ${args.subject}`.execute(db);
}

/** Returns the time of the first stored block at or above each height. Heights without such a block are missing. */
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
