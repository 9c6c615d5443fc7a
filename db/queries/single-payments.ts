import { type RawBuilder, sql } from "kysely";
import { openPaymentStates } from "../states.ts";
import {
  acceptsPayment,
  acceptsTexts,
  acceptsTime,
  isInList,
  listParts,
  ownersOf,
  type PaymentFilter,
  statesOf,
} from "./payment-filters.ts";

/**
 * SQL: queries to follow `with recursive`, the last of which is named `single`: these columns of the payments `p` of a filter
 * that are not part of the sums, because they are open or have ended since. With metadata, all its payments. `offset 0` makes
 * Postgres read each part by its index, however many payments it expects in it.
 */
export function selectSingle(filter: PaymentFilter, columns: RawBuilder<unknown>): RawBuilder<unknown> {
  const all = sql`${columns} from payment p`;
  if (filter.metadata) return sql`single as materialized (select ${all} where ${acceptsPayment(filter)})`;
  const owners = ownersOf(filter);
  const open = statesOf(filter).filter((state) => openPaymentStates.includes(state));
  return sql`${listParts(owners, open, filter)}, single as materialized (
    select p.* from list l cross join lateral (
      select ${all} where ${isInList(owners)} and ${acceptsTime(filter)} and ${acceptsTexts(filter)} offset 0
    ) p
    union all
    select ${columns} from ended_payment e cross join lateral (
      select p.* from payment p where p.id = e.payment_id offset 0
    ) p where e.account_id = ${filter.accountId} and e.mode = ${filter.mode} and ${acceptsPayment(filter)}
  )`;
}
