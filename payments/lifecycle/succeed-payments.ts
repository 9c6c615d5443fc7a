import { listVerifiedConfirms } from "../../db/queries/attempts.ts";
import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import type { Group } from "../../db/queries/ledger-groups.ts";
import { moveToSucceeded } from "../../db/queries/payment-moves.ts";
import { listPayments, type PaymentRow } from "../../db/queries/payments.ts";
import type { Db } from "../../db/tables.ts";
import { exceptionGroup, paymentGroup } from "../accounting/ledger-groups.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { accrue, type Credit } from "../payouts/accrue.ts";
import { type DirectPayment, settleDirect } from "../payouts/settle-direct.ts";

/** A payment that has just succeeded, with the time of its confirm. */
type Succeeded = { payment: PaymentRow; confirmedAt: Date; chain: string };
/** The result of booking buyers' confirmed transfers. `due` lists settlements that can begin now. */
export type Paid = { succeeded: Succeeded[]; groups: Group[]; due: string[] };

/**
 * Moves payments whose transfers are confirmed to `succeeded`, and credits their merchants. Settlement numbers follow
 * the order of movements on chain, so that a restored database assigns the same numbers again. Money for a payment that
 * has ended is booked as an exception.
 */
export async function succeedPayments(
  deps: PaymentDeps,
  db: Db,
  transfers: readonly ConfirmedTransfer[],
): Promise<Paid> {
  if (transfers.length === 0) return { succeeded: [], groups: [], due: [] };
  const moved = await moveSucceeded(deps, db, transfers);
  const owed: (Credit & { transfer: ConfirmedTransfer })[] = [];
  const direct: DirectPayment[] = [];
  const groups: Group[] = [];
  for (const transfer of transfers) {
    const payment = moved.get(transfer.payment_id ?? "");
    if (payment?.direct) {
      direct.push({ payment, transfer });
    } else if (payment) {
      const { owed_asset: asset, owed_amount: amount } = payment;
      const converted = asset !== null && amount !== null ? { asset, amount } : undefined;
      const due = converted ?? { asset: transfer.asset, amount: transfer.amount - payment.fee };
      owed.push({ payment, transfer, ...due, converted: converted !== undefined });
      groups.push(paymentGroup(transfer, { merchantId: payment.merchant_id, fee: payment.fee, converted }));
    } else {
      const isDirect = transfer.receiver !== deps.chains.get(transfer.chain)?.treasury;
      deps.log.error(
        { transfer: transfer.id, payment: transfer.payment_id },
        isDirect
          ? "merchant was paid directly for a payment that has ended; not booked"
          : "money arrived for a payment that has ended; booked as an exception",
      );
      if (!isDirect) groups.push(exceptionGroup(transfer));
    }
  }
  const due = await accrue(deps, db, owed);
  groups.push(...(await settleDirect(deps, db, direct)));
  const confirmedAt = await readConfirmTimes(db, [...moved.keys()]);
  const succeeded = [...owed, ...direct].map(({ payment, transfer }) => ({
    payment,
    confirmedAt: confirmedAt.get(payment.id) ?? payment.created_at,
    chain: transfer.chain,
  }));
  return { succeeded, groups, due };
}

/** Moves the payments and returns those that moved, by id. */
async function moveSucceeded(
  deps: PaymentDeps,
  db: Db,
  transfers: readonly ConfirmedTransfer[],
): Promise<Map<string, PaymentRow>> {
  const paid = transfers.flatMap(({ payment_id: id, tx_hash: txHash }) => (id ? [{ id, txHash }] : []));
  const moved = await moveToSucceeded(db, paid, deps.now());
  return new Map((await listPayments(db, moved)).map((payment) => [payment.id, payment]));
}

/** Returns when each payment's verified confirm was accepted. */
async function readConfirmTimes(db: Db, paymentIds: readonly string[]): Promise<Map<string, Date>> {
  const rows = await listVerifiedConfirms(db, paymentIds);
  return new Map(rows.map((row) => [row.payment_id, row.created_at]));
}
