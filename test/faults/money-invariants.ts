import type { ChainTransfer } from "./chain-scan.ts";
import type { Check, Evidence } from "./invariants.ts";
import { isTransferOf, listExceptions, listOurs, placeOf } from "./moved.ts";

/** Below this, minor units, the books may hold deposits as one sum instead of one by one. */
export const DUST = 1_000n;

/**
 * Money that reached the treasury belongs to a payment that succeeded, or stands among the exceptions, dust as a sum; none
 * left it unasked.
 */
export const findLostMoney: Check = (evidence) => {
  const { rows, history } = evidence;
  const { inwards, outwards } = listOurs(evidence);
  const booked = listExceptions(rows);
  const states = new Map(rows.payments.map(({ id, state }) => [id, state]));
  const stateOf = (log: ChainTransfer) => {
    const option = rows.options.find((one) => isTransferOf(log, one));
    return option && states.get(option.paymentId);
  };
  const unowned = inwards.filter((log) => booked.has(placeOf(log)) || stateOf(log) !== "succeeded");
  const lost = unowned.filter((log) => log.amount >= DUST && !booked.has(placeOf(log)));
  const payouts = rows.transfers.filter(({ purpose }) => purpose !== "payment");
  const isAsked = (log: ChainTransfer) =>
    payouts.some((payout) => isTransferOf(log, history.lost.length === 0 ? payout : { ...payout, amount: log.amount }));
  // A payout that the database has forgotten is an exception until it is adopted.
  const unasked = outwards.filter((log) => !isAsked(log));
  const unexplained = unasked.filter((log) => history.lost.length === 0 || !booked.has(placeOf(log)));
  return [
    ...lost.map((log) => `${log.amount} arrived in ${placeOf(log)} and its payment is ${stateOf(log) ?? "unknown"}`),
    ...unexplained.map((log) => `${log.amount} left the treasury in ${placeOf(log)} and no payout asked for it`),
    ...findMissing(evidence, unowned, unasked),
  ];
};

/** The exceptions of a token, with the dust of the day, sum to what arrived for nobody, less what left for nobody. */
function findMissing(
  { rows }: Evidence,
  unowned: readonly ChainTransfer[],
  unasked: readonly ChainTransfer[],
): string[] {
  const sum = (all: readonly { amount: bigint }[]) => all.reduce((total, { amount }) => total + amount, 0n);
  const booked = rows.entries.filter(({ account }) => account.startsWith("exceptions"));
  const tokenOf = (asset: string) => asset.slice(asset.lastIndexOf(":") + 1);
  const tokens = new Set([
    ...[...unowned, ...unasked].map(({ token }) => token),
    ...[...booked, ...rows.dust].map(({ asset }) => tokenOf(asset)),
  ]);
  return [...tokens].flatMap((token) => {
    const of = (logs: readonly ChainTransfer[]) => sum(logs.filter((log) => log.token === token));
    const isOf = ({ asset }: { asset: string }) => tokenOf(asset) === token;
    const held = sum(rows.dust.filter(isOf)) - sum(booked.filter(isOf));
    const expected = of(unowned) - of(unasked);
    return expected === held ? [] : [`${expected} of ${token} belong to nobody, and the exceptions hold ${held}`];
  });
}
