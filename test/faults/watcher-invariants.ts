import { isTransferOf, listTreasuryMovements } from "./list-movements.ts";
import type { Check } from "./payment-invariants.ts";

/**
 * Checks that every chain is recorded as final beyond its height at the end of the last fault, and that no booking has
 * failed.
 */
export const findStoppedWatchers: Check = ({ rows, heights }) => {
  const final = new Map(rows.cursors.map(({ chain, finalNumber }) => [chain, finalNumber]));
  const left = rows.failedBookings.map(({ kind, subject, error }) => `${kind} ${subject} is not booked: ${error}`);
  const behind = Object.entries(heights).flatMap(([chain, height]) => {
    const reached = final.get(chain) ?? -1;
    return reached >= height ? [] : [`${chain} was at ${height} after the last fault and is final up to ${reached}`];
  });
  return [...behind, ...left];
};

/** Checks that no payment expired or failed whose money was in a block by its deadline. */
export const findIgnoredMoney: Check = (evidence) => {
  const { rows, history } = evidence;
  // After lost commits the payment's options may be missing; the money is then among the exceptions.
  if (history.lost.length > 0) return [];
  const { incoming } = listTreasuryMovements(evidence);
  const ended = rows.payments.filter(({ mode, state }) => mode === "live" && /^(expired|failed)$/.test(state));
  return ended.flatMap(({ id, state, expiresAt }) => {
    const options = rows.options.filter(({ paymentId }) => paymentId === id);
    const paid = incoming.find((log) => log.at <= expiresAt && options.some((option) => isTransferOf(log, option)));
    if (paid === undefined) return [];
    return [`payment ${id} is ${state}, and was paid ${expiresAt - paid.at} s before its deadline by ${paid.txHash}`];
  });
};
