import { sql } from "kysely";
import type { Db } from "../tables.ts";

/**
 * How long an edited destination can still be paid by payments from before, hours: the longest lifetime of a payment
 * (payments/lifecycle/create-payment.ts), and one for clocks that differ.
 */
const EDITED_HOURS = 25;

/**
 * Returns the accounts of a chain, in lower case, that buyers may pay directly: the merchants' direct destinations, the
 * former ones that open payments still name, and the receivers of payments that have not ended.
 * @param args.now counts only until the watcher has read the chain up to it: after downtime, older payments are open
 */
export async function listDirectReceivers(
  db: Db,
  { chain, treasury, now }: { chain: string; treasury: string; now: Date },
): Promise<Set<string>> {
  const prefix = `${chain}:`;
  const { rows } = await sql<{ receiver: string }>`
    with since as (
      select least(${now}::timestamptz, coalesce(
        (select chain_time from chain_cursor where chain = ${chain}), ${now}::timestamptz)) - ${EDITED_HOURS} * interval '1 hour' as at
    ), edited as (
      select merchant_id from destination_change, since
        where before is not null and state = 'applied' and applied_at > since.at
      union select merchant_id from settlement_destination, since where updated_at > created_at and updated_at > since.at
    )
    select lower(substr(destination, ${prefix.length + 1}::integer)) as receiver from settlement_destination
      where direct and starts_with(destination, ${prefix})
    union select o.receiver from edited, since, payment p join payment_option o on o.payment_id = p.id
      where p.merchant_id = edited.merchant_id and p.created_at > since.at and p.state = 'requires_action'
        and o.direct and o.chain = ${chain}
    union select receiver from transfer
      where chain = ${chain} and state not in ('confirmed', 'ended') and purpose = 'payment' and receiver <> ${treasury}`.execute(
    db,
  );
  return new Set(rows.map(({ receiver }) => receiver));
}

type Offered = { token: string; payer: string; receiver: string; amount: bigint };

/** Returns those of these movements that an option for direct payment has offered, to any payment. */
export async function keepOffered<M extends Offered>(
  db: Db,
  { chain, movements }: { chain: string; movements: readonly M[] },
): Promise<M[]> {
  if (movements.length === 0) return [];
  const column = <K extends keyof Offered>(key: K) => movements.map((movement) => movement[key]);
  const { rows } = await sql<{ position: number }>`
    select distinct m.position::integer from unnest(
        ${column("token")}::text[], ${column("payer")}::text[], ${column("receiver")}::text[], ${column("amount")}::numeric[])
      with ordinality as m (token, payer, receiver, amount, position)
    join payment_option o on o.payer = m.payer and o.receiver = m.receiver and o.token = m.token and o.amount = m.amount
    where o.chain = ${chain} and o.direct`.execute(db);
  const positions = new Set(rows.map(({ position }) => position - 1));
  return movements.filter((_, index) => positions.has(index));
}
