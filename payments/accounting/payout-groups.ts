import type { Group } from "../../db/queries/ledger-groups.ts";
import { accounts } from "./ledger-accounts.ts";
import { doubleEntry, type Movement, type Place, placeOf } from "./ledger-groups.ts";

/** Returns the group of a payout that begins: from the merchant's balance to in transit. */
export function settlementBegunGroup(settlement: {
  id: string;
  asset: string;
  amount: bigint;
  merchantId: string;
}): Group {
  const { asset, amount } = settlement;
  return {
    kind: "settlement_begun",
    subject: settlement.id,
    entries: doubleEntry({ debit: accounts.payable(settlement.merchantId), credit: accounts.inTransit, asset, amount }),
  };
}

/** Returns the group of a payout that has arrived: from the treasury, clearing in transit. */
export function settlementPaidGroup(transfer: Movement): Group {
  const { asset, amount } = transfer;
  return {
    kind: "settlement_paid",
    subject: transfer.id,
    onChain: placeOf(transfer),
    entries: doubleEntry({ debit: accounts.inTransit, credit: accounts.treasury, asset, amount }),
  };
}

/** Returns the group of a refund that begins: from the merchant's balance to in transit. */
export function refundBegunGroup(refund: {
  id: string;
  asset: string;
  amount: bigint;
  merchantId: string;
  drawn: { asset: string; amount: bigint };
}): Group {
  const { asset, amount, drawn } = refund;
  const isConverted = drawn.asset !== asset;
  return {
    kind: "refund_begun",
    subject: refund.id,
    entries: [
      { account: accounts.payable(refund.merchantId), ...drawn },
      ...(isConverted
        ? [
            { account: accounts.exchange, asset: drawn.asset, amount: -drawn.amount },
            { account: accounts.exchange, asset, amount },
          ]
        : []),
      { account: accounts.inTransit, asset, amount: -amount },
    ],
  };
}

/** Returns the group that changes the amount of a payout in transit by `by` (minor units; negative reduces it). */
export function settlementChangedGroup(change: { id: string; asset: string; merchantId: string; by: bigint }): Group {
  return { ...settlementBegunGroup({ ...change, amount: change.by }), kind: "settlement_changed" };
}

/** Returns the group of the excess that a payout moved beyond what was owed: from the treasury to exceptions. */
export function overpaidGroup(transfer: { id: string; asset: string }, movement: Place, amount: bigint): Group {
  const { id, asset } = transfer;
  return {
    kind: "overpaid",
    subject: id,
    onChain: placeOf(movement),
    entries: doubleEntry({ debit: accounts.exceptions, credit: accounts.treasury, asset, amount }),
  };
}

/** Returns the group that reduces a refund in transit and credits `back`, which can be zero, to its merchant again. */
export function refundLessenedGroup(refund: {
  id: string;
  asset: string;
  amount: bigint;
  merchantId: string;
  back: { asset: string; amount: bigint };
}): Group {
  const { back, ...less } = refund;
  const group = refundBegunGroup({ ...less, drawn: back });
  const entries = group.entries.map((entry) => ({ ...entry, amount: -entry.amount }));
  return { ...group, kind: "refund_reduced", entries: entries.filter(({ amount }) => amount !== 0n) };
}

/** Returns the group that raises a refund in transit by what its merchant's balance pays for. */
export function refundRaisedGroup(raise: Parameters<typeof refundBegunGroup>[0]): Group {
  const group = refundBegunGroup(raise);
  return { ...group, kind: "refund_raised", entries: group.entries.filter(({ amount }) => amount !== 0n) };
}

/** Returns the group of what a refund moved and no merchant's balance pays for: from in transit, which it clears, to exceptions. */
export function refundOverpaidGroup(transfer: { id: string; asset: string }, movement: Place, amount: bigint): Group {
  const { asset } = transfer;
  const entries = doubleEntry({ debit: accounts.exceptions, credit: accounts.inTransit, asset, amount });
  return { ...overpaidGroup(transfer, movement, amount), entries };
}

/** Returns the group of a refund that has arrived: from the treasury, clearing in transit. */
export function refundPaidGroup(transfer: Movement): Group {
  return { ...settlementPaidGroup(transfer), kind: "refund_paid" };
}
