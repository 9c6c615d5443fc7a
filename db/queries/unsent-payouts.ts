import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** A payout that has begun and is ready to be sent, with the members of its natural key. */
export type UnsentPayout = {
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
  /** The destination that is registered now for a settlement (CAIP-10); null for a refund, and when there is none. */
  registered: string | null;
  /** The payout is a settlement of a merchant whose payouts an operator holds. */
  held: boolean;
  /** A transaction has made the payout or was to make it, so one with the present signature may still be included. */
  was_assigned: boolean;
};

/** SQL: the transfer (`t`) was assigned to a transaction, also when it became ready again (a reorg, a batch that omitted it). */
const wasAssigned = sql<boolean>`exists (
  select from event e where e.machine = 'transfer' and e.subject = t.id and e.to_state in ('assigned', 'included'))`;

/**
 * Returns the payouts of merchants on a chain that are ready and that another treasury would make, or that have failed before they
 * were sent, oldest first.
 */
export async function listUnsentPayouts(
  db: Db,
  { chain, treasury }: { chain: string; treasury: string },
): Promise<UnsentPayout[]> {
  const { rows } = await sql<UnsentPayout>`
    select t.id, t.asset, t.amount, t.payer, t.receiver, t.settlement_id, r.payment_id,
      coalesce(s.merchant_id, r.merchant_id) as merchant_id, coalesce(s.number, r.number) as number,
      d.destination as registered, m.payouts_held_at is not null as held, ${wasAssigned} as was_assigned
    from transfer t
    left join settlement s on s.id = t.settlement_id
    left join settlement_destination d on d.merchant_id = s.merchant_id and d.asset = s.asset
    left join merchant m on m.id = s.merchant_id
    left join refund r on r.id = t.refund_id
    where t.chain = ${chain} and t.state = 'ready' and (t.payer <> ${treasury} or t.retries > 0)
      and (t.settlement_id is not null or r.payment_id is not null)
    order by t.created_at, t.id`.execute(db);
  return rows;
}

/** A payout as it was read, and what was signed for it since then. */
export type Renewal = { payout: UnsentPayout; treasury: string; receiver: string; signature: string | null };

/**
 * Sets the treasury that makes a payout and the receiver, with their signature. Returns false if they are what the payout has
 * already. Also returns false if the payout is not ready any more, has changed or was ever assigned to a transaction, or if a
 * settlement's destination has changed or its merchant is held.
 */
export async function renewPayout(db: Db, { payout, treasury, receiver, signature }: Renewal): Promise<boolean> {
  const bytes = signature === null ? null : Buffer.from(signature.slice(2), "hex");
  const updated = await db
    .updateTable("transfer as t")
    .set({ payer: treasury, receiver, signature: bytes, hold_until: null })
    .where("id", "=", payout.id)
    .where("state", "=", "ready")
    .where("payer", "=", payout.payer)
    .where("receiver", "=", payout.receiver)
    .where("amount", "=", payout.amount)
    .where(sql<boolean>`(t.payer, t.receiver, t.signature) is distinct from
      (${treasury}::text, ${receiver}::text, ${bytes}::bytea)`)
    .where(sql<boolean>`not ${wasAssigned}`)
    .where(sql<boolean>`(t.settlement_id is null or exists (
      select from settlement s join merchant m on m.id = s.merchant_id and m.payouts_held_at is null
      join settlement_destination d on d.merchant_id = s.merchant_id and d.asset = s.asset
      where s.id = t.settlement_id and d.destination = ${payout.registered}))`)
    .executeTakeFirst();
  return updated.numUpdatedRows === 1n;
}
