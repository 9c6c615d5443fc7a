import { type Insertable, type Selectable, sql } from "kysely";
import { batchStatements } from "../batch-calls.ts";
import { readEvmRow } from "../chain-families.ts";
import type { Db, Tables } from "../tables.ts";
import { isAwaitingMoney } from "./expired-transfers.ts";
import { isBookable } from "./failed-bookings.ts";
import type { EvmTransferRow } from "./transfers.ts";

/** Records the gas that included transactions burned. Keeps rows that exist. */
export async function insertBurnedGas(db: Db, rows: readonly Insertable<Tables["burned_gas"]>[]): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto("burned_gas")
    .values([...rows])
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Deletes the records of blocks above a height, which a reorg removed. */
export async function deleteBurnedGasAbove(db: Db, args: { chain: string; above: number }): Promise<void> {
  await db.deleteFrom("burned_gas").where("chain", "=", args.chain).where("block_number", ">", args.above).execute();
}

/** Deletes rows from before a time whose transfers are finished, and returns how many. */
export async function deleteOldBurnedGas(db: Db, args: { before: Date; limit: number }): Promise<number> {
  const result = await sql`
    delete from burned_gas where (transfer_id, lane_id, nonce) in (
      select b.transfer_id, b.lane_id, b.nonce from burned_gas b join transfer t on t.id = b.transfer_id
      where b.at < ${args.before} and t.state in ('confirmed', 'ended') limit ${args.limit})`.execute(db);
  return Number(result.numAffectedRows ?? 0n);
}

/**
 * The gas that a payer has burned since `dayAgo`: `gas` in total, and the part since `hourAgo` as `last_hour`. `transactions` counts
 * those that moved no money. `code_hash` is null for a payer with a plain key.
 */
export type BurnedByPayer = {
  payer: string;
  code_hash: string | null;
  transactions: number;
  gas: bigint;
  last_hour: bigint;
};

type Window = { chain: string; dayAgo: Date; hourAgo: Date };

/**
 * Returns the gas burned on a chain by payer and code hash. A transaction that several transfers shared counts for no payer.
 * Concurrent calls share a statement, because every request for options needs it; the times are those of the earliest call.
 */
export const listBurnedByPayer: (db: Db, window: Window) => Promise<BurnedByPayer[]> = batchStatements(
  async (db, asked: readonly Window[]) => {
    const windows = [...Map.groupBy(asked, ({ chain }) => chain).values()].map((ofChain) =>
      ofChain.reduce((one, other) => (one.dayAgo <= other.dayAgo ? one : other)),
    );
    const { rows } = await sql<BurnedByPayer & { chain: string }>`
      select b.chain, b.payer, b.code_hash, count(*) filter (where not b.moved)::int as transactions, sum(b.gas) as gas,
        coalesce(sum(b.gas) filter (where b.at > w.hour_ago), 0) as last_hour
      from unnest(${windows.map(({ chain }) => chain)}::text[], ${windows.map(({ dayAgo }) => dayAgo)}::timestamptz[],
        ${windows.map(({ hourAgo }) => hourAgo)}::timestamptz[]) as w (chain, day_ago, hour_ago)
      join burned_gas b on b.chain = w.chain and b.alone and b.at > w.day_ago
      group by b.chain, b.payer, b.code_hash`.execute(db);
    const byChain = Map.groupBy(rows, ({ chain }) => chain);
    return asked.map(({ chain }) => byChain.get(chain) ?? []);
  },
);

/** Returns the contract wallets that have a transaction in flight. */
export async function listWalletsInFlight(
  db: Db,
  chain: string,
): Promise<{ payer: string; code_hash: string | null }[]> {
  return db
    .selectFrom("transfer")
    .select(["payer", "code_hash"])
    .where("chain", "=", chain)
    .where("state", "=", "assigned")
    .where("smart_wallet", "=", true)
    .execute();
}

/** SQL: no transaction that the transfer was ever assigned to can still land. `name` is the alias of `transfer`. */
const nothingInFlight = (name: string) => sql<boolean>`not exists (
  select from event e
  join transaction x on x.lane_id = e.detail ->> 'lane' and x.nonce = (e.detail ->> 'nonce')::bigint
  where e.subject = ${sql.ref(`${name}.id`)} and e.machine = 'transfer' and e.to_state = 'assigned'
    and x.state in ('signed', 'broadcast', 'accepted', 'included'))`;

/** SQL for `moveRows`: no transaction that the moved transfer was ever assigned to can still land. */
export const hasNothingInFlight = nothingInFlight("transfer");

/**
 * Returns buyers' transfers that no lane takes any more: those of barred payers, and those that were included `inclusions`
 * times without moving money. Returns only transfers whose transactions are all final, without those whose payments wait for other
 * money to be final.
 */
export async function listUnrelayable(
  db: Db,
  args: { chain: string; barred: readonly string[]; inclusions: number; now: Date; limit: number },
): Promise<EvmTransferRow[]> {
  const { rows } = await sql<Selectable<Tables["transfer"]>>`
    select t.* from transfer t
    where t.chain = ${args.chain} and t.state = 'ready' and t.purpose = 'payment'
      and (t.payer = any(${args.barred}) or t.id in (
        select transfer_id from burned_gas where chain = ${args.chain}
        group by transfer_id having count(*) >= ${args.inclusions}))
      and ${nothingInFlight("t")} and not ${isAwaitingMoney("t", args.now)}
      and ${isBookable("ended", { chain: "t.chain", subject: sql.ref("t.id") })}
    order by t.created_at limit ${args.limit}`.execute(db);
  return rows.map(readEvmRow);
}
