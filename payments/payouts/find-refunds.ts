import {
  findReportedRefund,
  listReportedRefunds,
  type RefundFilter,
  type RefundOwner,
} from "../../db/queries/refunds.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import { type RefundStatus, type RefundView, toRefundStates, toRefundView } from "./refund-views.ts";

/**
 * Returns a refund. Refuses with `refund_not_found`, also for a refund that the caller does not reach.
 * @param args.owner limits the call to refunds that a merchant's key reaches; unset for operators
 */
export async function findRefundView(
  { db }: { db: Db },
  args: { refundId: string; owner?: RefundOwner },
): Promise<Result<RefundView>> {
  const row = await findReportedRefund(db, args);
  return row ? done(toRefundView(row)) : refuse("refund_not_found", "no such refund");
}

/**
 * Lists refunds, the newest first. Refuses with `params_validation` for an invalid cursor.
 * @param args.owner limits the list to refunds that a merchant's key reaches; unset for operators
 */
export async function listRefundViews(
  { db }: { db: Db },
  {
    statuses,
    cursor,
    limit,
    ...rest
  }: Omit<RefundFilter, "states" | "after"> & {
    statuses?: readonly RefundStatus[] | undefined;
    cursor?: string | undefined;
    limit: number;
  },
): Promise<Result<Page<RefundView>>> {
  const after = readCursor(cursor, "time");
  if (!after.ok) return after;
  const filter = { ...rest, states: statuses && toRefundStates(statuses), after: after.value };
  const rows = await listReportedRefunds(db, filter, limit + 1);
  const { items, nextCursor } = toPage(rows, limit, ({ created_at: at, id }) => [at.toISOString(), id]);
  return done({ items: items.map(toRefundView), nextCursor });
}
