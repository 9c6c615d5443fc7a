import { sql } from "kysely";
import type { EvmKind } from "../chain-families.ts";
import type { Db } from "../tables.ts";

/** What a lane has in flight and what it may send next. */
export type LaneWork = {
  /** The used nonces of the lane that are in no block yet. */
  taken: number;
  /** Those of them of which no endpoint has accepted a transaction. */
  unanswered: number;
  /** The maximum cost of these nonces' gas, wei, and the sum of their gas limits. */
  cost: bigint;
  gas: bigint;
  /** When the newest of these transactions was signed. */
  newest: Date | null;
  /** The base fee of the newest block that was read, wei per gas; null when no block was read. */
  baseFee: bigint | null;
  /** The newest block that was read; null when no block was read. */
  height: number | null;
  /** Ready transfers of plain keys, counted up to `limit`. Other lanes may have reserved some of them, and some payers must wait. */
  ready: number;
  /** True when a transfer of a contract wallet is ready. */
  hasWallets: boolean;
  /** True when a transfer of a plain key is ready whose payer has burned gas alone since `burnersSince`. */
  hasBurners: boolean;
  /** Gas that shared transactions have burned on the chain since `burnedSince` without making their members' transfers. */
  sharedBurned: bigint;
  /** The number of the next replacement for the lane's next nonce: 0 unless that nonce was lowered. */
  replacement: number;
};

/** Reads what a lane has in flight and whether transfers are ready for it. One statement, because lanes read it before each batch. */
export async function readLaneWork(
  db: Db,
  args: {
    chain: string;
    laneId: string;
    nonce: number;
    kinds: readonly EvmKind[];
    now: Date;
    limit: number;
    burnedSince: Date;
    burnersSince: Date;
  },
): Promise<LaneWork> {
  const { chain, laneId, nonce, kinds, now, limit, burnedSince, burnersSince } = args;
  const ready = sql`from transfer where chain = ${chain} and state = 'ready' and kind = any(${kinds})
    and (hold_until is null or hold_until <= ${now})`;
  const { rows } = await sql<LaneWork>`
    select taken, unanswered, cost, gas, newest,
      (select base_fee from chain_block where chain = ${chain} order by number desc limit 1) as "baseFee",
      (select number from chain_block where chain = ${chain} order by number desc limit 1) as height,
      (select count(*)::int from (select ${ready} and not smart_wallet limit ${limit}) keys) as ready,
      exists (select ${ready} and smart_wallet) as "hasWallets",
      exists (select from burned_gas b join transfer t on t.chain = b.chain and t.payer = b.payer
        where b.chain = ${chain} and b.at > ${burnersSince} and b.alone
          and t.state = 'ready' and not t.smart_wallet) as "hasBurners",
      (select coalesce(sum(b.gas), 0) from burned_gas b
        where b.chain = ${chain} and b.at > ${burnedSince} and not b.alone) as "sharedBurned",
      (select coalesce(max(replacement) + 1, 0)::int from transaction where lane_id = ${laneId} and nonce = ${nonce}) as replacement
    from (
      select count(*)::int as taken, coalesce(sum(unanswered), 0)::int as unanswered, coalesce(sum(cost), 0) as cost,
        coalesce(sum(gas), 0) as gas, max(newest) as newest
      from (
        select (bool_or(state = 'broadcast') and not bool_or(state = 'accepted'))::int as unanswered,
          max(gas_limit * max_fee_per_gas) as cost, max(gas_limit) as gas, max(created_at) as newest
        from transaction t
        where lane_id = ${laneId} and state in ('signed', 'broadcast', 'accepted') and not exists (
          select from transaction twin where twin.lane_id = t.lane_id and twin.nonce = t.nonce and twin.state = 'included')
        group by nonce
      ) nonces
    ) flight`.execute(db);
  const [work] = rows;
  if (!work) throw new Error("an aggregate returned no row");
  return work;
}
