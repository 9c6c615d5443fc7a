import { getChain } from "../../chains/open-chains.ts";
import { moveRows } from "../../db/moves.ts";
import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import type { DustRow } from "../../db/queries/dust.ts";
import { insertGroups, keepNewGroups } from "../../db/queries/ledger-groups.ts";
import { wakeUnrecorded } from "../../db/queries/payout-queue.ts";
import { moveToPaid } from "../../db/queries/refunds.ts";
import type { SpentTransaction } from "../../db/queries/transactions.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import type { UnmatchedObservation } from "../../db/queries/unmatched-movements.ts";
import type { Db } from "../../db/tables.ts";
import type { BookingHandlers } from "../../transfers/booking-handlers.ts";
import { coldGroup, dustGroup, gasGroup, rentGroup, unmatchedGroup } from "../accounting/ledger-groups.ts";
import { refundPaidGroup, settlementPaidGroup } from "../accounting/payout-groups.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { targetMs } from "./payment-target.ts";
import { wakeRelays } from "./relay-transfers.ts";
import { succeedPayments } from "./succeed-payments.ts";
import { openUnsolicitedPayments } from "./unsolicited-payments.ts";

/** Creates the handlers that book what the watcher finds, for payments, settlements and refunds. */
export function createBookingHandlers(deps: PaymentDeps): BookingHandlers {
  return {
    confirmed: (db, confirmed) => bookConfirmed(deps, db, confirmed),
    ended: (db, ended, reason) => endPayments(deps, db, ended, { to: "expired", reason }),
    failed: (db, failed, reason) => endPayments(deps, db, failed, { to: "failed", reason }),
    unsolicited: (...args) => openUnsolicitedPayments(deps, ...args),
    unmatched: (db, observations) => bookUnmatched(deps, db, observations),
    dust: (db, dust) => bookDust(deps, db, dust),
    gas: (db, spent) => bookGas(deps, db, spent),
    relay: (chain, waiting) =>
      wakeRelays(
        deps,
        waiting.map(({ id, smart_wallet: isWallet }) => ({ chain, transferId: id, isWallet })),
      ),
    rent: async (db, rents) => insertGroups(db, await keepNewGroups(db, rents.map(rentGroup)), deps.now()),
  };
}

/** Books confirmed transfers: state, ledger, settlements and events, in the caller's transaction. */
async function bookConfirmed(deps: PaymentDeps, db: Db, confirmed: readonly ConfirmedTransfer[]): Promise<() => void> {
  const paid = await succeedPayments(
    deps,
    db,
    confirmed.filter((transfer) => transfer.purpose === "payment"),
  );
  const payouts = confirmed.filter((transfer) => transfer.purpose === "settlement");
  const settled = await finishSettlements(deps, db, payouts);
  const refunds = confirmed.filter((transfer) => transfer.purpose === "refund");
  await finishRefunds(deps, db, refunds);
  const cold = confirmed.filter((transfer) => transfer.purpose === "cold");
  const outgoing = [...payouts.map(settlementPaidGroup), ...refunds.map(refundPaidGroup), ...cold.map(coldGroup)];
  const groups = [...paid.groups, ...outgoing];
  await insertGroups(db, groups, deps.now());
  return () => {
    for (const { payment, confirmedAt, chain, asset, amount } of paid.succeeded) {
      deps.metrics.paymentTransitions.inc({ mode: payment.mode, from: "processing", to: "succeeded" });
      deps.metrics.received.inc({ chain, asset }, Number(amount));
      const took = deps.now().getTime() - confirmedAt.getTime();
      deps.metrics.confirmToSucceeded.observe({ chain }, took / 1000);
      // A series that begins with 1 has no increase.
      deps.metrics.latePayments.inc({ chain }, took > targetMs(getChain(deps.chains, chain)) ? 1 : 0);
    }
    if (settled > 0) deps.metrics.settlementTransitions.inc({ mode: "live", from: "paying", to: "paid" }, settled);
    void deps.publishPaymentChanges(paid.succeeded.map(({ payment }) => payment.id));
    const [first, ...others] = paid.due;
    if (first) void deps.enqueue("settle", [{ data: { settlementIds: [first, ...others] } }]);
  };
}

async function finishSettlements(deps: PaymentDeps, db: Db, payouts: readonly ConfirmedTransfer[]): Promise<number> {
  const at = deps.now();
  const ids = payouts.flatMap((transfer) => transfer.settlement_id ?? []);
  const moved = await moveRows(db, "settlement", {
    ids,
    from: "paying",
    to: "paid",
    at,
    set: { paid_at: at, due_at: null },
  });
  if (moved.length !== payouts.length) throw new Error("a confirmed payout has no settlement in state paying");
  return moved.length;
}

async function finishRefunds(deps: PaymentDeps, db: Db, transfers: readonly ConfirmedTransfer[]): Promise<void> {
  const paid = transfers.flatMap(({ refund_id: id, tx_hash: txHash }) => (id === null ? [] : { id, txHash }));
  const moved = await moveToPaid(db, { paid, at: deps.now() });
  if (moved !== transfers.length) throw new Error("a confirmed refund is not in state paying");
}

/** Books unmatched movements (late, wrong or duplicate money) as exceptions. An operator resolves them. */
async function bookUnmatched(deps: PaymentDeps, db: Db, observations: readonly UnmatchedObservation[]): Promise<void> {
  const groups = observations.flatMap((observation) => {
    const chain = deps.chains.get(observation.chain);
    return chain ? (unmatchedGroup(chain, observation) ?? []) : [];
  });
  // A lost payout that is booked can be adopted. Lock order: queues, then the sums of the ledger (avoids deadlock).
  const isOut = ({ chain, payer }: UnmatchedObservation) => payer === deps.chains.get(chain)?.treasury;
  for (const chain of new Set(observations.filter(isOut).map((one) => one.chain))) await wakeUnrecorded(db, chain);
  await insertGroups(db, groups, deps.now());
}

/** Books the dust deposits of a day as one exception. Returns the exception's subject. */
async function bookDust(deps: PaymentDeps, db: Db, dust: DustRow): Promise<string> {
  const group = dustGroup(dust);
  await insertGroups(db, [group], deps.now());
  return group.subject;
}

/**
 * Books the gas of final transactions. A transaction that a deep reorg removed and that is final again has been booked
 * before, so existing groups are skipped.
 */
async function bookGas(deps: PaymentDeps, db: Db, spent: readonly SpentTransaction[]): Promise<void> {
  const groups = spent.filter(({ fee }) => fee > 0n).map(gasGroup);
  await insertGroups(db, await keepNewGroups(db, groups), deps.now());
}

/**
 * Ends the payments of transfers that can no longer happen: `expired`, or `failed` when their transactions burned gas and moved
 * no money. Payouts do not end. Returns a function to call after the commit.
 */
async function endPayments(
  deps: PaymentDeps,
  db: Db,
  transfers: readonly TransferRow[],
  { to, reason }: { to: "expired" | "failed"; reason: string },
): Promise<() => void> {
  const ids = transfers.flatMap((transfer) => transfer.payment_id ?? []);
  const moved = await moveRows(db, "payment", { ids, from: "processing", to, at: deps.now(), detail: { reason } });
  return () => {
    deps.metrics.paymentTransitions.inc({ mode: "live", from: "processing", to }, moved.length);
    void deps.publishPaymentChanges(moved);
  };
}
