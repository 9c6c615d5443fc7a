import { type RawBuilder, type Selectable, sql } from "kysely";
import type { PaymentState } from "../states.ts";
import type { Db, Tables } from "../tables.ts";
import type { Entry } from "./ledger-groups.ts";

/** An open exception: money in the ledger that is assigned to no owner yet, with everything that the rows know about it. */
export type ExceptionRow = {
  /** The id of the ledger group that booked it. */
  id: number;
  /** The kind of that group. */
  booked: "unmatched" | "exception" | "overpaid" | "dust";
  at: Date;
  chain: string;
  /** Null for a day's dust, which is booked in one group. */
  tx_hash: string | null;
  asset: string;
  /** Minor units; negative for an outflow from the treasury that no transfer explains. */
  amount: bigint;
  /** Addresses; null when they are unknown, or the observation of the movement no longer exists. */
  payer: string | null;
  receiver: string | null;
  /** The payment that the movement refers to, by its transfer or by its natural key. */
  payment_id: string | null;
  payment_state: PaymentState | null;
  /** The amount of a quote of that payment; preferably a quote of the same payer and amount. */
  asked: bigint | null;
  /** Our transfer that the movement refers to; set when a restored database has lost the fact that it was made. */
  transfer_id: string | null;
  /**
   * The newest payment for which this payer had an option in the week before the movement was recorded, when that refers to
   * no payment. A movement is recorded late after an outage.
   */
  perhaps: string | null;
  /** The note of the booking; for dust, the number of deposits and the day. */
  note: string | null;
};

/** The index of options by payer begins with their hour, so each hour is one search. */
const PERHAPS_HOURS = 7 * 24;

/** Returns true while an open exception has an entry on an account, such as a lane's. */
export async function hasOpenException(db: Db, account: string): Promise<boolean> {
  const { rows } = await sql`
    select from ledger_group g join ledger_entry e on e.group_id = g.id and e.account = ${account}
    where g.kind in ('unmatched', 'exception', 'overpaid')
      and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)
    limit 1`.execute(db);
  return rows.length > 0;
}

/** Returns the open exceptions, oldest first, or the one with the given id. */
export async function listOpenExceptions(
  db: Db,
  args: { id?: number | undefined; limit: number },
): Promise<ExceptionRow[]> {
  const { rows } = await sql<ExceptionRow>`
    with open as materialized (
      select g.* from ledger_group g
      where g.kind in ('unmatched', 'exception', 'overpaid', 'dust')
        ${args.id === undefined ? sql`` : sql`and g.id = ${args.id}`}
        and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)
      order by g.id limit ${args.limit}
    )
    select g.id, g.kind as booked, g.at, g.chain, g.tx_hash, e.asset, -e.amount as amount, nullif(s.payer, '') as payer,
      nullif(s.receiver, '') as receiver,
      p.id as payment_id, p.state as payment_state, o.amount as asked, t.id as transfer_id,
      case when p.id is null then (
        select po.payment_id
        from generate_series(option_hour(s.observed_at), option_hour(s.observed_at) - ${PERHAPS_HOURS}::integer, -1) hour
        cross join lateral (
          select payment_id from payment_option
          where option_hour(created_at) = hour and right(payer, 8) = right(s.payer, 8) and payer = s.payer
          order by created_at desc limit 1
        ) po limit 1
      ) end as perhaps, g.note
    from open g
    join ledger_entry e on e.group_id = g.id and e.account = 'exceptions'
    left join observation s on s.chain = g.chain and s.block_id = g.block_id
      and s.tx_hash = g.tx_hash and s.log_index = g.log_index
    left join lateral (
      select t.id, t.payment_id from transfer t
      where t.chain = g.chain and (t.id = g.subject or t.authorization_nonce = s.authorization_nonce)
      order by t.id limit 1
    ) t on true
    left join lateral (
      select po.payment_id, po.amount from payment_option po
      where po.chain = g.chain and po.authorization_nonce = s.authorization_nonce
      order by po.payer = s.payer desc, po.amount = s.amount desc, po.created_at desc, po.id limit 1
    ) o on true
    left join payment p on p.id = coalesce(t.payment_id, o.payment_id)
    order by g.id`.execute(db);
  return rows;
}

/** Locks an exception until the commit, so that it is resolved only once. */
export async function lockException(db: Db, id: number): Promise<void> {
  await sql`select lock_exception(${id})`.execute(db);
}

/** The place of a movement on its chain. */
export type MovementPlace = {
  chain: string;
  block_number: number;
  block_id: string;
  tx_hash: string;
  log_index: number;
};

/** Returns the place of the movement that an exception booked; undefined for the sum of a day's dust, which names none. */
export async function findMovementPlace(db: Db, id: number): Promise<MovementPlace | undefined> {
  const { rows } = await sql<MovementPlace>`
    select chain, block_number, block_id, tx_hash, log_index from ledger_group
    where id = ${id} and tx_hash is not null and log_index is not null`.execute(db);
  return rows[0];
}

/** A movement's booking as an exception, with the entries of its resolution when an operator has `resolved` it. */
export type ExceptionBooking = { groupId: number; resolved: boolean; entries: Entry[] };

/**
 * SQL: the groups `g` that booked the movement of an observation as an exception, also those of other blocks that it was in before a
 * reorg. The unique key of a booking starts with the block hash on EVM and with the transaction on Solana.
 */
export const bookingsOf = (observation: string): RawBuilder<unknown> => {
  const s = sql.id(observation);
  return sql`
    observation b join ledger_group g on g.kind = 'unmatched' and g.tx_hash = b.tx_hash and g.subject in (
      b.chain || '/' || b.block_id || '/' || b.log_index, b.chain || '/' || b.tx_hash || '/' || b.log_index)
      and b.authorization_nonce = ${s}.authorization_nonce and b.chain = ${s}.chain and b.tx_hash = ${s}.tx_hash
      and b.token = ${s}.token and b.payer = ${s}.payer and b.receiver = ${s}.receiver and b.amount = ${s}.amount`;
};

/**
 * Returns the booking of a payout's movement and locks it until the commit. Undefined when the movement was never booked. A
 * booking names the block in which the movement was booked, and a reorg can have moved the movement to another one.
 */
export async function findExceptionBooking(
  db: Db,
  movement: Selectable<Tables["observation"]>,
): Promise<ExceptionBooking | undefined> {
  const { chain, block_id, tx_hash, log_index } = movement;
  const { rows } = await sql<{ id: number }>`
    select g.id from observation s cross join lateral (select g.id from ${bookingsOf("s")}) g
    where s.chain = ${chain} and s.block_id = ${block_id} and s.tx_hash = ${tx_hash} and s.log_index = ${log_index}`.execute(
    db,
  );
  const [group] = rows;
  if (!group) return undefined;
  await lockException(db, group.id);
  const resolution = await db
    .selectFrom("ledger_group")
    .select("id")
    .where("kind", "=", "exception_resolved")
    .where("subject", "=", String(group.id))
    .executeTakeFirst();
  const entries = await db
    .selectFrom("ledger_entry")
    .select(["account", "asset", "amount"])
    .where("group_id", "in", [group.id, ...(resolution ? [resolution.id] : [])])
    .execute();
  return { groupId: group.id, resolved: resolution !== undefined, entries };
}
