import { type ExceptionBooking, findExceptionBooking } from "../../db/queries/exceptions.ts";
import { creditMerchants, debitMerchant, type Entry, insertGroups } from "../../db/queries/ledger-groups.ts";
import type { ObservationRow } from "../../db/queries/observations.ts";
import { lockPayments } from "../../db/queries/payments.ts";
import { wakeRefunds, wakeSettlements } from "../../db/queries/payout-queue.ts";
import { findRefund, type RefundRow, recordReceiver } from "../../db/queries/refunds.ts";
import { relinkPaid, relinkPayments } from "../../db/queries/settlement-links.ts";
import {
  findSettlement,
  increaseSettlement,
  insertSettlements,
  recordDestination,
  type SettlementRow,
} from "../../db/queries/settlements.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import type { BookAdopted } from "../../transfers/adopt-payouts.ts";
import { overpaidGroup, refundLessenedGroup, settlementChangedGroup } from "../accounting/payout-groups.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { deductFromSettlement } from "./deduct-from-settlement.ts";
import { lockCovering } from "./lock-covering.ts";
import { readKeptOf } from "./paid-before-restore.ts";
import { raiseRefund } from "./raise-refund.ts";
import { shareOwed, splitRefund, splitSettlement } from "./split-payout.ts";

type Deps = Pick<PaymentDeps, "now" | "log" | "networks">;

/**
 * Books a payout that was sent before the database was restored from a backup. The amount on chain wins:
 * - It is less than the row's amount: the row is reduced to it, and the remainder gets a new settlement or refund with
 *   its own number.
 * - It is more: the payout absorbs further settlements of the merchant that have not begun, and a refund is drawn on them. Any excess
 *   beyond those is booked as an exception.
 * A merchant's balance never becomes negative.
 */
export function adoptPayout(deps: Deps): BookAdopted {
  return async (db, transfer, movement) => {
    // Locks the exception first, as operators do who resolve it (avoids deadlock).
    const exception = movement.booked ? await findExceptionBooking(db, movement) : undefined;
    const amount = await adoptAmount(deps, db, transfer, movement);
    // Last, because bookings lock balances and queues before the sums of the ledger (avoids deadlock).
    if (exception) await reverseException(deps, db, transfer, exception);
    return amount;
  };
}

/** Changes the payout to what the chain shows. Returns the amount that it has then; undefined when an operator must decide. */
async function adoptAmount(
  deps: Deps,
  db: Db,
  transfer: TransferRow,
  movement: ObservationRow,
): Promise<bigint | undefined> {
  const rest = transfer.amount - movement.amount;
  if (transfer.settlement_id !== null) {
    const settlement = await findSettlement(db, transfer.settlement_id);
    if (transfer.receiver !== movement.receiver)
      await recordDestination(db, { id: settlement.id, destination: `${transfer.chain}:${movement.receiver}` });
    if (rest > 0n) await creditRest(deps, db, settlement, rest);
    const covered = rest < 0n ? await fillSettlement(deps, db, settlement, -rest) : 0n;
    // The merchant's other settlements waited for this one. Lock order: settlements, balances, then queues (avoids deadlock).
    await wakeSettlements(db, { merchantId: settlement.merchant_id, asset: settlement.asset });
    const amount = rest > 0n ? movement.amount : transfer.amount + covered;
    await bookOverpaid(deps, db, { transfer, movement, amount });
    return amount;
  }
  // Only the signer's file names the receiver, so any amount went to the cold address of its time.
  if (transfer.purpose === "cold") return movement.amount;
  const refund = await findRefund(db, transfer.refund_id ?? "");
  if (transfer.receiver !== movement.receiver) await recordReceiver(db, { id: refund.id, receiver: movement.receiver });
  // The nonce of a refund without a merchant is derived from the movement it returns, so a smaller amount is
  // unexplained.
  const { payment_id, merchant_id } = refund;
  if (payment_id === null || merchant_id === null) {
    if (rest > 0n) return undefined;
    await bookOverpaid(deps, db, { transfer, movement, amount: transfer.amount });
    return transfer.amount;
  }
  // Refunds of its payment waited for this one.
  if (rest === 0n) await wakeRefunds(db, { merchantId: merchant_id, asset: refund.owed_asset ?? refund.asset });
  if (rest > 0n) await redrawRest(deps, db, refund, rest);
  if (rest < 0n) await raiseRefund(deps, db, { refund: { ...refund, payment_id, merchant_id }, transfer, movement });
  return movement.amount;
}

/** Reverses the booking of a movement as an exception, and the operator's resolution of it if there is one. */
async function reverseException(deps: Deps, db: Db, transfer: TransferRow, booking: ExceptionBooking): Promise<void> {
  const sums = new Map<string, Entry>();
  for (const { account, asset, amount } of booking.entries) {
    const key = `${account} ${asset}`;
    sums.set(key, { account, asset, amount: (sums.get(key)?.amount ?? 0n) - amount });
  }
  const entries = [...sums.values()].filter(({ amount }) => amount !== 0n);
  const kind = booking.resolved ? "exception_reversed" : "exception_resolved";
  const group = { kind, subject: String(booking.groupId), entries, note: `is ${transfer.id}` };
  await insertGroups(db, [group], deps.now());
}

/** Credits the unpaid part of a settlement that has begun to the merchant again, as a settlement of its own. */
async function creditRest(deps: Deps, db: Db, settlement: SettlementRow, rest: bigint): Promise<void> {
  await splitSettlement(deps, db, settlement, { rest, credit: rest });
  const { id, asset, merchant_id: merchantId } = settlement;
  await insertGroups(db, [settlementChangedGroup({ id, asset, merchantId, by: -rest })], deps.now());
}

/**
 * Attributes the amount paid beyond a settlement to the merchant's next settlements that have not begun. Returns how
 * much of it they cover, minor units.
 */
async function fillSettlement(deps: Deps, db: Db, settlement: SettlementRow, more: bigint): Promise<bigint> {
  const { id, merchant_id: merchantId, asset, converted } = settlement;
  const at = deps.now();
  let left = more;
  const keptOf = await readKeptOf(deps, db, { merchantId, asset });
  for (const one of await lockCovering(db, { merchantId, asset, own: null, converted, amount: more, keptOf })) {
    const taken = await deductFromSettlement(db, one, left, at);
    if (taken === one.amount) await relinkPayments(db, { from: one.id, to: id });
    else if (taken > 0n) await relinkPaid(db, { from: one.id, to: id, paid: taken });
    left -= taken;
  }
  const covered = more - left;
  if (covered === 0n) return 0n;
  await increaseSettlement(db, { id, by: covered });
  if (!(await debitMerchant(db, { merchantId, asset, amount: covered })))
    throw new Error(`the settlements of ${merchantId} exceed its balance`);
  await insertGroups(db, [settlementChangedGroup({ id, asset, merchantId, by: covered })], at);
  return covered;
}

/**
 * Creates a new refund for the unsent part of a refund that has begun, drawn on the merchant's balance, as far as the payment's other
 * refunds leave it. The merchant is credited what the sent part did not draw, which can be zero.
 */
async function redrawRest(deps: Deps, db: Db, refund: RefundRow, rest: bigint): Promise<void> {
  const { id, asset, merchant_id: merchantId, payment_id: paymentId, owed_asset } = refund;
  if (merchantId === null || paymentId === null) throw new Error(`refund ${id} is drawn on no balance`);
  const at = deps.now();
  // The lock serializes the numbers of a payment's refunds.
  await lockPayments(db, [paymentId]);
  const { owedRest } = shareOwed(refund, rest);
  const back = { asset: owed_asset ?? asset, amount: owedRest ?? rest };
  if (back.amount > 0n) {
    const [number = 0] = await creditMerchants(db, [{ merchantId, ...back, settlements: 1 }]);
    const settlement = { id: newId("stl", at), merchantId, mode: "live" as const, ...back, number, dueAt: at };
    await insertSettlements(db, [{ ...settlement, converted: owed_asset !== null }], at);
  }
  // A new refund locks its queue. Lock order: balances, then queues (avoids deadlock).
  await splitRefund(deps, db, refund, rest);
  await wakeRefunds(db, { merchantId, asset: back.asset });
  await insertGroups(db, [refundLessenedGroup({ id, asset, amount: rest, merchantId, back })], at);
}

async function bookOverpaid(
  deps: Deps,
  db: Db,
  { transfer, movement, amount }: { transfer: TransferRow; movement: ObservationRow; amount: bigint },
): Promise<void> {
  const over = movement.amount - amount;
  if (over <= 0n) return;
  await insertGroups(db, [overpaidGroup(transfer, movement, over)], deps.now());
  deps.log.error(
    { transfer: transfer.id, tx: movement.tx_hash, amount: String(over) },
    "payout moved more than is owed; the difference is booked as an exception",
  );
}
