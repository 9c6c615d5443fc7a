import { sql } from "kysely";
import type { PaymentState } from "./states.ts";
import type { Db } from "./tables.ts";

/** Money in the books that belongs to nobody yet, and all that the rows know of it. */
export type ExceptionRow = {
  /** Of the ledger group that booked it. */
  id: number;
  at: Date;
  chain: string;
  /** Null for small deposits of a day, which are booked together. */
  txHash: string | null;
  asset: string;
  /** Minor units; negative for what has left the treasury without us. */
  amount: bigint;
  /** Addresses; null where the movement is not on record any more. */
  payer: string | null;
  receiver: string | null;
  /** The payment that the movement names, by its transfer or by its natural key. */
  paymentId: string | null;
  paymentState: PaymentState | null;
  /** What the named payment was to be paid with. */
  asked: bigint | null;
  /** A transfer of ours that the movement names: made, and then forgotten by a database that was restored. */
  transferId: string | null;
  /** The newest payment that this payer had an option of, where the movement names none. */
  perhaps: string | null;
  /** What the booking says of itself; of small deposits, how many and of which day. */
  note: string | null;
  /** Small deposits of a day, booked together. */
  isDust: boolean;
};

/** What is open, oldest first; one when its id is given. */
export async function listOpenExceptions(
  db: Db,
  args: { id?: number | undefined; limit: number },
): Promise<ExceptionRow[]> {
  const { rows } = await sql<ExceptionRow>`
    select g.id, g.at, g.chain, g.tx_hash as "txHash", e.asset, -e.amount as amount, s.payer, s.receiver,
      p.id as "paymentId", p.state as "paymentState", o.amount as asked, t.id as "transferId",
      case when p.id is null then (
        select payment_id from payment_option po where po.payer = s.payer order by po.created_at desc limit 1
      ) end as perhaps, g.note, g.kind = 'dust' as "isDust"
    from ledger_group g
    join ledger_entry e on e.group_id = g.id and e.account = 'exceptions'
    left join sighting s on s.chain = g.chain and s.block_hash = g.block_hash
      and s.tx_hash = g.tx_hash and s.log_index = g.log_index
    left join lateral (
      select t.id, t.payment_id from transfer t
      where t.chain = g.chain and (t.id = g.subject or t.authorization_nonce = s.authorization_nonce)
      order by t.id limit 1
    ) t on true
    left join lateral (
      select po.payment_id, po.amount from payment_option po
      where po.chain = g.chain and po.authorization_nonce = s.authorization_nonce order by po.id limit 1
    ) o on true
    left join payment p on p.id = coalesce(t.payment_id, o.payment_id)
    where g.kind in ('stray', 'exception', 'dust') ${args.id === undefined ? sql`` : sql`and g.id = ${args.id}`}
      and not exists (select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text)
    order by g.id limit ${args.limit}`.execute(db);
  return rows;
}

/** Keeps others from closing the same exception until the commit. */
export async function lockException(db: Db, id: number): Promise<void> {
  await db.selectFrom("ledger_group").select("id").where("id", "=", id).forUpdate().execute();
}

/** The movement behind an exception is that of a transfer which waits to be made. False, and nothing changed, when it is not. */
export async function unbookSighting(db: Db, args: { groupId: number; transferId: string }): Promise<boolean> {
  const result = await sql`
    update sighting s set transfer_id = t.id, booked = false
    from ledger_group g, transfer t
    where g.id = ${args.groupId} and t.id = ${args.transferId} and t.state = 'ready'
      and s.chain = g.chain and s.block_hash = g.block_hash and s.tx_hash = g.tx_hash
      and s.log_index = g.log_index and not s.orphaned
      and t.authorization_nonce = s.authorization_nonce and t.token = s.token and t.payer = s.payer
      and t.receiver = s.receiver and t.amount = s.amount`.execute(db);
  return result.numAffectedRows === 1n;
}
