import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** A payout that is ready to be sent from a treasury, with the members of its natural key. */
export type ReadyPayout = {
  id: string;
  asset: string;
  amount: bigint;
  payer: string;
  receiver: string;
  settlement_id: string | null;
  merchant_id: string;
  /** Null for a settlement. */
  payment_id: string | null;
  number: number;
  /** A transaction has made the payout or was to make it, so one with the present signature may still be included. */
  was_assigned: boolean;
};

/** SQL: the transfer (`t`) was assigned to a transaction, also when it became ready again (a reorg, a batch that omitted it). */
const wasAssigned = sql<boolean>`exists (
  select from event e where e.machine = 'transfer' and e.subject = t.id and e.to_state in ('assigned', 'included'))`;

/** Returns the payouts of merchants on a chain that are ready and whose payer is not the treasury, oldest first. */
export async function listPayoutsOfOtherTreasury(
  db: Db,
  { chain, treasury }: { chain: string; treasury: string },
): Promise<ReadyPayout[]> {
  const { rows } = await sql<ReadyPayout>`
    select t.id, t.asset, t.amount, t.payer, t.receiver, t.settlement_id, r.payment_id,
      coalesce(s.merchant_id, r.merchant_id) as merchant_id, coalesce(s.number, r.number) as number,
      ${wasAssigned} as was_assigned
    from transfer t
    left join settlement s on s.id = t.settlement_id
    left join refund r on r.id = t.refund_id
    where t.chain = ${chain} and t.state = 'ready' and t.payer <> ${treasury}
      and (t.settlement_id is not null or r.payment_id is not null)
    order by t.created_at, t.id`.execute(db);
  return rows;
}

/**
 * Sets the treasury that makes a payout, with its signature. Returns false if the payout is not ready any more, or if it was
 * ever assigned to a transaction.
 */
export async function renewPayout(
  db: Db,
  { payout, treasury, signature }: { payout: ReadyPayout; treasury: string; signature: string | null },
): Promise<boolean> {
  const updated = await db
    .updateTable("transfer as t")
    .set({
      payer: treasury,
      signature: signature === null ? null : Buffer.from(signature.slice(2), "hex"),
      hold_until: null,
    })
    .where("id", "=", payout.id)
    .where("state", "=", "ready")
    .where("payer", "=", payout.payer)
    .where(sql<boolean>`not ${wasAssigned}`)
    .executeTakeFirst();
  return updated.numUpdatedRows === 1n;
}
