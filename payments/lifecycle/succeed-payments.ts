import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import type { Group } from "../../db/queries/ledger-groups.ts";
import { lockPaying, moveToSucceeded, type PayingPayment } from "../../db/queries/payment-moves.ts";
import type { Db } from "../../db/tables.ts";
import { exceptionGroup, paymentGroup } from "../accounting/ledger-groups.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { accrue, type Credit } from "../payouts/accrue.ts";
import { type DirectPayment, settleDirect } from "../payouts/settle-direct.ts";

/** A payment that has just succeeded, with the time of its confirm and the money that it moved. */
type Succeeded = { payment: Pick<PayingPayment, "id" | "mode">; confirmedAt: Date } & Pick<
  ConfirmedTransfer,
  "chain" | "asset" | "amount"
>;
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
  const paying = await lockPaying(
    db,
    transfers.flatMap((transfer) => transfer.payment_id ?? []),
  );
  const paymentOf = new Map(paying.map((payment) => [payment.id, payment]));
  const owed: (Credit & { payment: PayingPayment; transfer: ConfirmedTransfer })[] = [];
  const direct: (DirectPayment & { payment: PayingPayment })[] = [];
  const groups: Group[] = [];
  for (const transfer of transfers) {
    const payment = paymentOf.get(transfer.payment_id ?? "");
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
  const { due, settlementOf } = await accrue(deps, db, owed);
  const paid = [...owed, ...direct];
  await moveToSucceeded(
    db,
    paid.map(({ payment, transfer }) => {
      const { tx_hash: txHash, asset, amount } = transfer;
      return { payment, txHash, asset, amount, settlementId: settlementOf.get(payment.id) ?? null };
    }),
    deps.now(),
  );
  groups.push(...(await settleDirect(deps, db, direct)));
  const succeeded = paid.map(({ payment, transfer }) => ({
    payment,
    confirmedAt: payment.confirmed_at ?? payment.created_at,
    chain: transfer.chain,
    asset: transfer.asset,
    amount: transfer.amount,
  }));
  return { succeeded, groups, due };
}
