import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** Returns those of these rows whose work still waits for a job. */
export async function listOpenRows(db: Db, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const { rows } = await sql<{ id: string }>`
    select id from attempt where id = any(${ids}) and state = 'waiting'
    union all select id from transfer where id = any(${ids}) and state = 'ready'
    union all select id from payment where id = any(${ids}) and state = 'requires_action'
    union all select id from settlement where id = any(${ids}) and state in ('due', 'accumulating')
    union all select id from refund where id = any(${ids}) and state = 'due'`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** A payment to which a row belongs. */
export type PaymentOfRow = { row: string; payment_id: string };

/** Returns the payments to which rows belong that jobs name, in the order of their ids, after the payment `after`. */
export async function listPaymentsOfRows(
  db: Db,
  { ids, after = "", limit }: { ids: readonly string[]; after?: string | undefined; limit: number },
): Promise<PaymentOfRow[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<PaymentOfRow>`
    select min(row) as row, payment_id from (${paymentsOf(ids)}) found where payment_id > ${after}
    group by payment_id order by payment_id limit ${limit}`.execute(db);
  return rows;
}

/** Returns the number of payments to which rows belong. */
export async function countPaymentsOfRows(db: Db, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const { rows } = await sql<{ count: number }>`
    select count(distinct payment_id)::int as count from (${paymentsOf(ids)}) found`.execute(db);
  return rows[0]?.count ?? 0;
}

const paymentsOf = (ids: readonly string[]) => sql`
    select id as row, id as payment_id from payment where id = any(${ids})
    union all select id, payment_id from attempt where id = any(${ids})
    union all select id, payment_id from transfer where id = any(${ids}) and payment_id is not null
    union all select t.id, p.id from transfer t join payment p on p.settlement_id = t.settlement_id where t.id = any(${ids})
    union all select t.id, r.payment_id from transfer t join refund r on r.id = t.refund_id
      where t.id = any(${ids}) and r.payment_id is not null
    union all select settlement_id, id from payment where settlement_id = any(${ids})
    union all select id, payment_id from refund where id = any(${ids}) and payment_id is not null`;
