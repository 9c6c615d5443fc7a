import { findExceptionBooking } from "../db/exceptions.ts";
import { creditMerchants, debitMerchant, type Entry, insertGroups } from "../db/ledger.ts";
import { wakeSettlements } from "../db/payout-queue.ts";
import { findRefund, insertRefund, lessenRefund, listRefunds, noteReceiver, type RefundRow } from "../db/refunds.ts";
import {
  chooseUnbegun,
  findSettlement,
  growSettlement,
  insertSettlements,
  lessenSettlement,
  lockUnbegun,
  noteDestination,
  retiePayments,
  type SettlementRow,
  type Unbegun,
} from "../db/settlements.ts";
import type { SightingRow } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import type { TransferRow } from "../db/transfers.ts";
import type { AdoptedBook } from "../transfers/adopt.ts";
import { take } from "./begin-refunds.ts";
import type { PaymentDeps } from "./deps.ts";
import { newId } from "./ids.ts";
import { overpaidGroup, refundLessenedGroup, settlementChangedGroup } from "./ledger.ts";

type Deps = Pick<PaymentDeps, "now" | "log">;

/**
 * Books a payout that was made before the database was restored. Less was paid than the rows owe: the payout comes to what
 * was paid, and the remainder gets a settlement or refund with a number of its own. More was paid: further settlements of
 * the merchant that have not begun are part of it, and what even they do not come to is booked as an exception. A
 * merchant's balance never becomes negative by it.
 */
export function adoptPayout(deps: Deps): AdoptedBook {
  return async (db, transfer, movement) => {
    if (movement.booked) await reverseException(deps, db, transfer, movement);
    const rest = transfer.amount - movement.amount;
    if (transfer.settlement_id !== null) {
      const settlement = await findSettlement(db, transfer.settlement_id);
      if (transfer.receiver !== movement.receiver)
        await noteDestination(db, { id: settlement.id, destination: `${transfer.chain}:${movement.receiver}` });
      if (rest > 0n) await splitSettlement(deps, db, settlement, rest);
      // Its other settlements have waited for this one.
      await wakeSettlements(db, { merchantId: settlement.merchant_id, asset: settlement.asset });
      const covered = rest < 0n ? await fillSettlement(deps, db, settlement, -rest) : 0n;
      const amount = rest > 0n ? movement.amount : transfer.amount + covered;
      await bookOverpaid(deps, db, { transfer, movement, amount });
      return amount;
    }
    const refund = await findRefund(db, transfer.refund_id ?? "");
    if (transfer.receiver !== movement.receiver) await noteReceiver(db, { id: refund.id, receiver: movement.receiver });
    // The amount of money that belongs to nobody is part of its number: another one has no explanation.
    if (rest > 0n && refund.merchant_id === null) return undefined;
    if (rest > 0n) await splitRefund(deps, db, refund, rest);
    const amount = rest > 0n ? movement.amount : transfer.amount;
    await bookOverpaid(deps, db, { transfer, movement, amount });
    return amount;
  };
}

/** Takes the movement out of the exceptions, and out of where an operator has booked it from there. */
async function reverseException(deps: Deps, db: Db, transfer: TransferRow, movement: SightingRow): Promise<void> {
  const booking = await findExceptionBooking(db, movement);
  if (!booking) return;
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

/** The rest of a settlement that was paid in part is owed again, and due at once under the next number. */
async function splitSettlement(deps: Deps, db: Db, settlement: SettlementRow, rest: bigint): Promise<void> {
  const { id, merchant_id: merchantId, mode, asset, converted } = settlement;
  const at = deps.now();
  await lessenSettlement(db, { id, by: rest });
  const [number = 0] = await creditMerchants(db, [{ merchantId, asset, amount: rest, settlements: 1 }]);
  const row = { id: newId("stl"), merchantId, mode, asset, number, amount: rest, dueAt: at, converted };
  await insertSettlements(db, [row], at);
  await insertGroups(db, [settlementChangedGroup({ id, asset, merchantId, by: -rest })], at);
}

/**
 * What was paid beyond a settlement is what the merchant's next ones, which have not begun, come to: as much of them as
 * that covers is paid with it. Returns how much that is, minor units.
 */
async function fillSettlement(deps: Deps, db: Db, settlement: SettlementRow, more: bigint): Promise<bigint> {
  const { id, merchant_id: merchantId, asset } = settlement;
  const at = deps.now();
  let left = more;
  for (const one of await lockCovering(db, { merchantId, asset, own: null, amount: more })) {
    const taken = await take(db, one, left, at);
    if (taken > 0n && taken === one.amount) await retiePayments(db, { from: one.id, to: id });
    left -= taken;
  }
  const covered = more - left;
  if (covered === 0n) return 0n;
  await growSettlement(db, { id, by: covered });
  if (!(await debitMerchant(db, { merchantId, asset, amount: covered })))
    throw new Error(`the settlements of ${merchantId} come to more than it is owed`);
  await insertGroups(db, [settlementChangedGroup({ id, asset, merchantId, by: covered })], at);
  return covered;
}

/** Locks the oldest settlements that cover an amount. Those that begin before they are locked are replaced by others. */
async function lockCovering(db: Db, of: Parameters<typeof chooseUnbegun>[1]): Promise<Unbegun[]> {
  for (;;) {
    const chosen = await chooseUnbegun(db, of);
    const ids = chosen.map(({ id }) => id);
    const locked = await lockUnbegun(db, ids);
    if (locked.length === chosen.length) return locked;
  }
}

/** The rest of a refund that was sent in part is drawn on the merchant's balance again, by a refund of its own. */
async function splitRefund(deps: Deps, db: Db, refund: RefundRow, rest: bigint): Promise<void> {
  const { id, payment_id: paymentId, merchant_id: merchantId, owed_asset, owed_amount } = refund;
  if (paymentId === null || merchantId === null) throw new Error(`refund ${id} is drawn on no balance`);
  const at = deps.now();
  const sent = refund.amount - rest;
  const owedSent = owed_amount === null ? null : (owed_amount * sent + refund.amount - 1n) / refund.amount;
  const owedRest = owed_amount === null || owedSent === null ? null : owed_amount - owedSent;
  const back = { asset: owed_asset ?? refund.asset, amount: owedRest ?? rest };
  const numbers = (await listRefunds(db, paymentId)).map(({ number }) => number);
  await lessenRefund(db, { id, amount: sent, owedAmount: owedSent });
  const { due_try: _, paid_at: __, ...copied } = refund;
  const further = { id: newId("rfnd"), number: Math.max(...numbers) + 1, amount: rest, owed_amount: owedRest };
  await insertRefund(db, { ...copied, ...further, state: "due", created_at: at, due_at: at });
  const [number = 0] = await creditMerchants(db, [{ merchantId, ...back, settlements: 1 }]);
  const settlement = { id: newId("stl"), merchantId, mode: "live" as const, ...back, number, dueAt: at };
  await insertSettlements(db, [{ ...settlement, converted: owed_asset !== null }], at);
  await insertGroups(db, [refundLessenedGroup({ id, asset: refund.asset, amount: rest, merchantId, back })], at);
}

async function bookOverpaid(
  deps: Deps,
  db: Db,
  { transfer, movement, amount }: { transfer: TransferRow; movement: SightingRow; amount: bigint },
): Promise<void> {
  const over = movement.amount - amount;
  if (over <= 0n) return;
  await insertGroups(db, [overpaidGroup(transfer, movement, over)], deps.now());
  deps.log.error(
    { transfer: transfer.id, tx: movement.tx_hash, amount: String(over) },
    "a payout moved more than the rows owe; the difference is booked as an exception",
  );
}
