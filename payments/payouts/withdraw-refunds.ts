import { deriveNonce, refundKey } from "../../chains/natural-key.ts";
import { findUnreadEpoch } from "../../db/epoch.ts";
import { inTransaction } from "../../db/in-transaction.ts";
import { moveRows } from "../../db/moves.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { isNumberUnclaimed } from "../../db/queries/observations.ts";
import { findPayment } from "../../db/queries/payments.ts";
import { wakeRefunds } from "../../db/queries/payout-queue.ts";
import {
  findOwnedRefund,
  listRefunds,
  listUnbegunRefunds,
  type RefundOwner,
  type RefundRow,
} from "../../db/queries/refunds.ts";
import type { RefundState } from "../../db/states.ts";
import type { Db } from "../../db/tables.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type PaymentQuery, toMoney } from "../lifecycle/read-payment.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Money } from "../views.ts";
import { chainOf } from "./sign-payout.ts";

/** The status of a refund in the API. `waiting`: for its merchant's balance. `held`: screening rejects its receiver. */
type RefundStatus = "waiting" | "held" | "processing" | "paid" | "marked" | "withdrawn";
export type RefundView = {
  refundId: string;
  paymentId: string;
  amount: Money;
  status: RefundStatus;
  createdAt: Date;
  paidAt: Date | null;
};

const statusOf: Record<RefundState, RefundStatus> = {
  due: "waiting",
  held: "held",
  paying: "processing",
  paid: "paid",
  marked: "marked",
  withdrawn: "withdrawn",
};

/** Lists a payment's refunds, oldest first. Refuses with `payment_not_found`. */
export async function listPaymentRefunds(
  deps: Pick<PaymentDeps, "db" | "chains">,
  query: PaymentQuery,
): Promise<Result<RefundView[]>> {
  const payment = await findPayment(deps.db, query);
  if (!payment) return refuse("payment_not_found", "no such payment");
  const rows = await listRefunds(deps.db, payment.id);
  return done(
    rows.map((row) => ({
      refundId: row.id,
      paymentId: payment.id,
      amount: toMoney(deps, `caip19/${row.asset}`, row.amount),
      status: statusOf[row.state],
      createdAt: row.created_at,
      paidAt: row.paid_at,
    })),
  );
}

export type Withdrawn = { refundId: string; paymentId: string };

/**
 * Withdraws a refund that has not begun: it sends nothing, its amount can be refunded again, and the payouts behind it
 * continue. The guarded move decides the race with `beginRefunds`. Repeatable.
 *
 * After a restore, the database may show a refund as waiting although its money was sent. If it were withdrawn, a
 * further refund, which has another number and thus another nonce, would send the money twice. So the call refuses
 * until the chain has been reread, and when the chain shows the refund.
 *
 * Refuses with `payment_not_found` when no payment has such a refund, and with `invalid_state` once the refund has
 * begun.
 * @param owner limits the call to refunds of this merchant; unset for operators
 */
export async function withdrawRefund(
  deps: { db: Db; now: () => Date; networks: Pick<Networks, "deployment"> },
  args: { actor: AuditActor; refundId: string; owner?: RefundOwner },
): Promise<Result<Withdrawn>> {
  return inTransaction(deps.db, async (db) => {
    const refund = await findOwnedRefund(db, args);
    if (!refund?.payment_id) return refuse("payment_not_found", "no such refund");
    const withdrawn = done({ refundId: refund.id, paymentId: refund.payment_id });
    if (refund.state === "withdrawn") return withdrawn;
    if (refund.state !== "due" && refund.state !== "held")
      return refuse("invalid_state", `the refund is ${statusOf[refund.state]}`);
    const made = await findSentReason(deps, db, refund);
    if (made) return refuse("invalid_state", made);
    // The row is locked, so its state cannot have changed.
    const at = deps.now();
    const set = { due_at: null };
    if (refund.state === "due")
      await moveRows(db, "refund", { ids: [refund.id], from: "due", to: "withdrawn", at, set });
    else await moveRows(db, "refund", { ids: [refund.id], from: "held", to: "withdrawn", at, set });
    // The refund may be the only obstacle of its queue. (A trigger wakes the settlements behind it.)
    await wakeRefunds(db, { merchantId: refund.merchant_id ?? "", asset: refund.owed_asset ?? refund.asset });
    const entry = { actor: args.actor, action: "refund.withdrawn", subject: refund.id, at };
    const [before, after] = [{ state: refund.state }, { state: "withdrawn" }];
    await insertAuditEntries(db, [{ ...entry, before, after }]);
    return withdrawn;
  });
}

/** Returns the reason if the refund may have been sent before a restore of the database; undefined otherwise. */
async function findSentReason(
  { networks }: { networks: Pick<Networks, "deployment"> },
  db: Db,
  refund: RefundRow,
): Promise<string | undefined> {
  const chain = chainOf(refund.asset);
  if (await findUnreadEpoch(db, chain)) return "the chain is being reread after a restore: try again later";
  const { merchant_id: merchantId, payment_id: paymentId } = refund;
  if (merchantId === null || paymentId === null) return undefined;
  const number = deriveNonce(networks.deployment, refundKey({ merchantId, paymentId, number: refund.number }));
  return (await isNumberUnclaimed(db, { chain, number })) ? "the chain shows that the refund was sent" : undefined;
}

/** A refund in the operators' list. */
export type RefundLine = {
  id: string;
  paymentId: string | null;
  merchantId: string | null;
  state: RefundState;
  asset: string;
  amount: bigint;
  receiver: string | null;
  createdAt: Date;
};

/** Lists refunds that have not begun, of all merchants or of one, oldest first. */
export async function listWaitingRefunds(
  { db }: { db: Db },
  args: { merchantId?: string | undefined; limit: number },
): Promise<RefundLine[]> {
  const rows = await listUnbegunRefunds(db, args);
  return rows.map((row) => ({
    id: row.id,
    paymentId: row.payment_id,
    merchantId: row.merchant_id,
    state: row.state,
    asset: row.asset,
    amount: row.amount,
    receiver: row.receiver,
    createdAt: row.created_at,
  }));
}
