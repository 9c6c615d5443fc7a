import { sql } from "kysely";
import type { Db } from "../tables.ts";
import { selectOptionHours } from "./payment-search.ts";
import type { PaymentRow } from "./payments.ts";

/** Payments that are read of the payers together, the newest first. */
const MOST_PAYMENTS = 10_000;

/**
 * Returns those of these addresses that have paid an account to which one of the merchants belongs. Reads the customers of the
 * accounts, and the payments that have not been added to them yet.
 */
export async function listCustomersAmong(
  db: Db,
  { merchantIds, addresses }: { merchantIds: readonly string[]; addresses: readonly string[] },
): Promise<string[]> {
  const { rows } = await sql<{ payer: string }>`
    with account as materialized (select distinct account_id, mode from merchant where id = any(${merchantIds}))
    select c.payer from account a
    join summed_owner s on s.account_id = a.account_id and s.mode = a.mode and s.merchant_id = ''
    cross join lateral (select payer from customer where owner = s.id and payer = any(${addresses}) offset 0) c
    union
    select o.payer from account a
    cross join lateral (
      select payment_id from ended_payment where account_id = a.account_id and mode = a.mode offset 0
    ) e
    cross join lateral (select option_id from payment where id = e.payment_id offset 0) p
    cross join lateral (select payer from payment_option where id = p.option_id offset 0) o
    where o.payer = any(${addresses})`.execute(db);
  return rows.map(({ payer }) => payer);
}

/** A succeeded payment with its payer and the chain of its money. `highest`: the highest number of its refunds, or 0. */
export type RefundablePayment = Pick<
  PaymentRow,
  "id" | "merchant_id" | "paid_amount" | "fee" | "owed_asset" | "owed_amount"
> & { paid_asset: string; payer: string; chain: string; highest: number };

/** Returns the newest payments that these payers have made to merchants. Steps back through the hours that have options. */
export async function listPaymentsOfCustomers(
  db: Db,
  { merchantIds, payers }: { merchantIds: readonly string[]; payers: readonly string[] },
): Promise<RefundablePayment[]> {
  const { rows } = await sql<RefundablePayment>`
    with recursive ${selectOptionHours}
    select p.id, p.merchant_id, p.paid_asset, p.paid_amount, p.fee, p.owed_asset, p.owed_amount, o.payer, o.chain,
      coalesce((select max(number) from refund where payment_id = p.id), 0) as highest
    from hour h cross join lateral (
      select id, payment_id, payer, chain from payment_option
      where option_hour(created_at) = h.number and right(payer, 8) = any(${payers.map((one) => one.slice(-8))})
        and payer = any(${payers})
      offset 0
    ) o cross join lateral (
      select * from payment
      where id = o.payment_id and option_id = o.id and state = 'succeeded' and merchant_id = any(${merchantIds}) offset 0
    ) p limit ${MOST_PAYMENTS}`.execute(db);
  return rows;
}
