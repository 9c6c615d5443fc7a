import { deriveNonce, refundKey } from "../../chains/natural-key.ts";
import { debitMerchant, insertGroups } from "../../db/queries/ledger-groups.ts";
import type { ObservationRow } from "../../db/queries/observations.ts";
import { findPaymentRow, lockPayments, type PaymentRow } from "../../db/queries/payments.ts";
import { listUnclaimedPayouts } from "../../db/queries/payout-nonces.ts";
import { wakeRefunds, wakeSettlements } from "../../db/queries/payout-queue.ts";
import {
  listRefunds,
  lockUnbegunRefunds,
  moveToWithdrawn,
  type RefundRow,
  setRefundAmount,
} from "../../db/queries/refunds.ts";
import { insertDeductions } from "../../db/queries/settlement-deductions.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import { refundOverpaidGroup, refundRaisedGroup } from "../accounting/payout-groups.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { deductFromSettlement } from "./deduct-from-settlement.ts";
import { lockCovering } from "./lock-covering.ts";
import { readKeptOf } from "./paid-before-restore.ts";
import { computeLeft } from "./refund-payment.ts";
import { findSentReason } from "./sent-before-restore.ts";

type Deps = Pick<PaymentDeps, "now" | "log" | "networks">;
type Refund = RefundRow & { payment_id: string; merchant_id: string };

/**
 * Raises a locked refund that has begun to what the chain shows was sent, so that this counts against what can still be refunded of
 * its payment. Withdraws refunds of the payment that have not begun and exceed its rest. The merchant's balance pays for the excess as
 * far as it covers it, up to what the payment received. An exception books the remainder.
 */
export async function raiseRefund(
  deps: Deps,
  db: Db,
  { refund, transfer, movement }: { refund: Refund; transfer: TransferRow; movement: ObservationRow },
): Promise<void> {
  const { id, asset, merchant_id: merchantId, owed_asset, owed_amount } = refund;
  const more = movement.amount - refund.amount;
  await lockPayments(db, [refund.payment_id]);
  const payment = await findPaymentRow(db, refund.payment_id);
  if (!payment) throw new Error(`the payment of ${id} does not exist`);
  const { excess, beyond } = await findExcess(deps, db, { refund, payment, more, transfer });
  const refundable = more - beyond;
  const wanted = owed_amount === null ? refundable : (owed_amount * refundable + refund.amount - 1n) / refund.amount;
  const drawn = { asset: owed_asset ?? asset, amount: await drawCovered(deps, db, { refund, payment, wanted }) };
  const covered = drawn.amount === wanted ? refundable : (refundable * drawn.amount) / wanted;
  const owedAmount = owed_amount === null ? null : owed_amount + drawn.amount;
  await setRefundAmount(db, { id, amount: movement.amount, owedAmount });
  const groups = [
    ...(drawn.amount > 0n ? [refundRaisedGroup({ id, asset, amount: covered, merchantId, drawn })] : []),
    ...(more > covered ? [refundOverpaidGroup(transfer, movement, more - covered)] : []),
  ];
  // The payment's other refunds waited for this one, and the merchant's settlements for what it has sent. Lock order: settlements, balances,
  // queues, then what triggers of a withdrawal lock, and the sums of the ledger (avoids deadlock).
  await wakeRefunds(db, { merchantId, asset: drawn.asset });
  await wakeSettlements(db, { merchantId, asset: drawn.asset });
  for (const one of excess) {
    await moveToWithdrawn(db, { id: one.id, at: deps.now() });
    deps.log.error({ refund: one.id, raised: id }, "refund is withdrawn: an earlier one of its payment sent more");
  }
  await insertGroups(db, groups, deps.now());
  deps.log.error(
    { refund: id, tx: movement.tx_hash, more: String(more), uncovered: String(more - covered) },
    "refund moved more than it was to; what the merchant's balance does not cover is booked as an exception",
  );
}

/**
 * Locks the refunds of the payment that have not begun, and returns the newest of them that were not sent either (`excess`): as
 * many as have to be withdrawn until the others are no more than it received. Also returns by how much they exceed it even then, at most
 * `more`.
 */
async function findExcess(
  deps: Deps,
  db: Db,
  { refund, payment, more, transfer }: { refund: Refund; payment: PaymentRow; more: bigint; transfer: TransferRow },
): Promise<{ excess: RefundRow[]; beyond: bigint }> {
  const unbegun = await lockUnbegunRefunds(db, payment.id);
  const { chain, payer } = transfer;
  const made = (await listUnclaimedPayouts(db, [{ chain, payer }])).get(chain);
  const keyOf = ({ number }: RefundRow) => refundKey({ merchantId: refund.merchant_id, paymentId: payment.id, number });
  // Others that were sent too count with what they have sent.
  const all = (await listRefunds(db, payment.id)).map((one) => {
    if (one.id === refund.id) return { ...one, amount: one.amount + more };
    return { ...one, amount: made?.get(deriveNonce(deps.networks.deployment, keyOf(one)))?.amount ?? one.amount };
  });
  let beyond = -computeLeft(payment.paid_amount, all);
  const excess: RefundRow[] = [];
  for (const one of unbegun) {
    if (beyond <= 0n) break;
    // One that was sent too is adopted by itself.
    if (await findSentReason(deps, db, { asset: one.asset, key: keyOf(one) })) continue;
    excess.push(one);
    beyond -= one.amount;
  }
  if (beyond < 0n) return { excess, beyond: 0n };
  return { excess, beyond: beyond < more ? beyond : more };
}

/**
 * Draws an amount on the merchant's settlements that have not begun, as far as they cover it, and records it with their payments.
 * Returns what was drawn.
 */
async function drawCovered(
  deps: Deps,
  db: Db,
  { refund, payment, wanted }: { refund: Refund; payment: PaymentRow; wanted: bigint },
): Promise<bigint> {
  const { merchant_id: merchantId, asset, owed_asset } = refund;
  const balance = { merchantId, asset: owed_asset ?? asset };
  const keptOf = await readKeptOf(deps, db, balance);
  const of = { ...balance, own: payment.settlement_id, converted: owed_asset !== null, amount: wanted, keptOf };
  let left = wanted;
  for (const one of await lockCovering(db, of)) {
    const taken = await deductFromSettlement(db, one, left, deps.now());
    const from = { refundId: refund.id, settlementId: one.id, paymentId: payment.id };
    if (taken > 0n) await insertDeductions(db, { ...from, amount: taken });
    left -= taken;
  }
  const drawn = wanted - left;
  if (drawn > 0n && !(await debitMerchant(db, { ...balance, amount: drawn })))
    throw new Error(`the settlements of ${merchantId} exceed its balance`);
  return drawn;
}
