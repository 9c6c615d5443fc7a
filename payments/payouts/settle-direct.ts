import { moveRows } from "../../db/moves.ts";
import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import { creditMerchants, type Group } from "../../db/queries/ledger-groups.ts";
import type { PaymentRow } from "../../db/queries/payments.ts";
import { linkSettlements } from "../../db/queries/settlement-links.ts";
import { insertSettlements, recordDirectPayment } from "../../db/queries/settlements.ts";
import type { Db } from "../../db/tables.ts";
import { directPaymentGroup } from "../accounting/ledger-groups.ts";
import { settlementBegunGroup } from "../accounting/payout-groups.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** A payment whose buyer has paid the merchant's destination directly, and the confirmed transfer that proves it. */
export type DirectPayment = { payment: Pick<PaymentRow, "id" | "merchant_id" | "mode">; transfer: ConfirmedTransfer };

/**
 * Settles payments that went directly to the merchant; we never hold their money. Each payment gets a settlement that
 * is paid at once, so that lists, webhooks and statements report it like any other. Returns the ledger groups to book:
 * the credit and the payout both pass through in transit and cancel each other there.
 */
export async function settleDirect(
  deps: Pick<PaymentDeps, "now">,
  db: Db,
  direct: readonly DirectPayment[],
): Promise<Group[]> {
  const at = deps.now();
  const groups: Group[] = [];
  for (const { payment, transfer } of direct) {
    const { merchant_id: merchantId, mode } = payment;
    const { asset, amount, chain } = transfer;
    const [number = 0] = await creditMerchants(db, [{ merchantId, asset, amount: 0n, settlements: 1 }]);
    const id = newId("stl", at);
    await insertSettlements(db, [{ id, merchantId, mode, asset, number, amount, dueAt: null }], at);
    await linkSettlements(db, [{ paymentId: payment.id, settlementId: id }]);
    await recordDirectPayment(db, { id, destination: `${chain}:${transfer.receiver}`, txHash: transfer.tx_hash });
    const set = { due_at: null };
    await moveRows(db, "settlement", { ids: [id], from: "due", to: "paying", at, set });
    await moveRows(db, "settlement", { ids: [id], from: "paying", to: "paid", at, set: { paid_at: at } });
    groups.push(directPaymentGroup(transfer, merchantId), settlementBegunGroup({ id, asset, amount, merchantId }));
  }
  return groups;
}
