import type { ChainTransfer } from "./evm-scan.ts";
import { isTransferOf, listExceptions, listTreasuryMovements, placeOf } from "./list-movements.ts";
import type { Check, Evidence } from "./payment-invariants.ts";

/** Deposits below this many minor units may be booked as one sum. */
export const DUST = 1_000n;

/**
 * Checks that money in the treasury belongs to a succeeded payment, an exception or the sum of dust, and that every
 * transfer out of the treasury has a payout.
 */
export const findLostMoney: Check = (evidence) => {
  const { rows, history } = evidence;
  const { incoming, outgoing } = listTreasuryMovements(evidence);
  const booked = listExceptions(rows);
  const states = new Map(rows.payments.map(({ id, state }) => [id, state]));
  const stateOf = (log: ChainTransfer) => {
    const option = rows.options.find((one) => isTransferOf(log, one));
    return option && states.get(option.paymentId);
  };
  const unowned = incoming.filter((log) => booked.has(placeOf(log)) || stateOf(log) !== "succeeded");
  const lost = unowned.filter((log) => log.amount >= DUST && !booked.has(placeOf(log)));
  const payouts = rows.transfers.filter(({ purpose }) => purpose !== "payment");
  const hasPayout = (log: ChainTransfer) =>
    payouts.some((payout) => isTransferOf(log, history.lost.length === 0 ? payout : { ...payout, amount: log.amount }));
  // A payout whose commit was lost is an exception until it is adopted.
  const withoutPayout = outgoing.filter((log) => !hasPayout(log));
  const unexplained = withoutPayout.filter((log) => history.lost.length === 0 || !booked.has(placeOf(log)));
  return [
    ...lost.map((log) => `${log.amount} arrived in ${placeOf(log)} and its payment is ${stateOf(log) ?? "unknown"}`),
    ...unexplained.map((log) => `${log.amount} left the treasury in ${placeOf(log)} without a payout`),
    ...findMissing(evidence, unowned, withoutPayout),
  ];
};

/** Checks that the exceptions and the dust of a token sum to the unmatched deposits minus the unmatched withdrawals. */
function findMissing(
  { rows }: Evidence,
  unowned: readonly ChainTransfer[],
  withoutPayout: readonly ChainTransfer[],
): string[] {
  const sum = (all: readonly { amount: bigint }[]) => all.reduce((total, { amount }) => total + amount, 0n);
  const booked = rows.entries.filter(({ account }) => account.startsWith("exceptions"));
  const tokenOf = (asset: string) => asset.slice(asset.lastIndexOf(":") + 1);
  const tokens = new Set([
    ...[...unowned, ...withoutPayout].map(({ token }) => token),
    ...[...booked, ...rows.dust].map(({ asset }) => tokenOf(asset)),
  ]);
  return [...tokens].flatMap((token) => {
    const of = (logs: readonly ChainTransfer[]) => sum(logs.filter((log) => log.token === token));
    const isOf = ({ asset }: { asset: string }) => tokenOf(asset) === token;
    const held = sum(rows.dust.filter(isOf)) - sum(booked.filter(isOf));
    const expected = of(unowned) - of(withoutPayout);
    return expected === held ? [] : [`${expected} of ${token} are unmatched, and the exceptions hold ${held}`];
  });
}
