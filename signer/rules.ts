import type { AssetLimits, HotBalance } from "./limits.ts";
import type { RefusalReason } from "./refusals.ts";

// The rules that decide on a payout: pure functions over what the chain has shown, what the signer has recorded, and the
// limits file.

/** The amounts that limits apply to, minor units. `increase` is what the payout adds to what its nonce has counted before. */
type LimitedAmounts = {
  amount: bigint;
  increase: bigint;
  /** What was counted for the asset within the last hour. */
  assetHour: bigint;
  /** What was counted for the merchant and asset within the last 24 hours; undefined for a payout without a merchant. */
  merchantDay: bigint | undefined;
  /** What was counted for all new merchants together within the last 24 hours; undefined if this merchant is not new. */
  newMerchantsDay: bigint | undefined;
};

/** Returns the limit that a payout exceeds. Signing a recorded payout again exceeds none. */
export function findLimitRefusal(limits: AssetLimits, of: LimitedAmounts): RefusalReason | undefined {
  if (of.increase === 0n) return undefined;
  if (of.amount > limits.perPayout) return "limit_payout";
  const perDay = of.newMerchantsDay === undefined ? limits.perMerchantDay : limits.newMerchantPerDay;
  if (of.merchantDay !== undefined && of.merchantDay + of.increase > perDay) return "limit_merchant_day";
  if (of.newMerchantsDay !== undefined && of.newMerchantsDay + of.increase > limits.newMerchantsPerDay)
    return "limit_new_merchants_day";
  return of.assetHour + of.increase > limits.perHour ? "limit_asset_hour" : undefined;
}

/**
 * Returns what moves to the cold address, minor units: everything above the target once the balance exceeds the ceiling.
 * @param of.needed what payouts may still take from this balance
 */
export function findExcess(
  { ceiling, cold }: HotBalance,
  { balance, needed }: { balance: bigint; needed: bigint },
): bigint {
  const left = balance - needed;
  return cold === undefined || left <= ceiling ? 0n : left - cold.target;
}

/** An amount of an asset whose minor unit is 10^-decimals. */
export type DecimalAmount = { amount: bigint; decimals: number };

/** Most decimals of an asset in a networks file. */
const MAX_DECIMALS = 36;

/** Returns the sum of amounts of assets with the same peg, in units of 10^-36. */
function sumInPeg(amounts: readonly DecimalAmount[]): bigint {
  return amounts.reduce((sum, { amount, decimals }) => sum + amount * 10n ** BigInt(MAX_DECIMALS - decimals), 0n);
}

/**
 * Returns `funds_short` if a merchant's verified deposits do not cover everything that was signed for them and this payout.
 * Assets of one currency count together, because a payment can be made in another asset than the one that is paid out.
 */
export function findFundsRefusal(of: {
  deposits: readonly DecimalAmount[];
  payouts: readonly DecimalAmount[];
  increase: DecimalAmount;
}): "funds_short" | undefined {
  const left = sumInPeg(of.deposits) - sumInPeg(of.payouts);
  return left < sumInPeg([of.increase]) ? "funds_short" : undefined;
}

/** A verified deposit of one payment. */
export type PaymentDeposit = { payer: string; amount: bigint };

/** A refund of one payment that was signed: its amount and what it added to what its nonce had counted before, minor units. */
export type SignedRefund = { nonce: string; receiver: string; amount: bigint; counted: bigint };

/**
 * Returns why a refund of a payment is refused. All refunds return no more than was paid, and each account gets no more than it
 * paid itself: otherwise a stranger who sends one minor unit for a payment could be named as the receiver of its whole refund.
 */
export function findRefundRefusal(
  { nonce, receiver, amount, increase }: { nonce: string; receiver: string; amount: bigint; increase: bigint },
  deposits: readonly PaymentDeposit[],
  refunds: readonly SignedRefund[],
): "receiver_not_payer" | "funds_short" | undefined {
  if (sumAmounts(deposits) < sumAmounts(refunds.map(({ counted }) => ({ amount: counted }))) + increase)
    return "funds_short";
  const own = deposits.filter(({ payer }) => payer === receiver);
  const returned = amount + sumOtherRefunds({ nonce, receiver }, refunds);
  return sumAmounts(own) < returned ? "receiver_not_payer" : undefined;
}

/** Returns the sum of the highest amounts that were signed for a receiver under each other nonce. */
function sumOtherRefunds(
  { nonce, receiver }: Pick<SignedRefund, "nonce" | "receiver">,
  refunds: readonly SignedRefund[],
): bigint {
  const highest = new Map<string, bigint>();
  for (const one of refunds)
    if (one.receiver === receiver && one.nonce !== nonce && one.amount > (highest.get(one.nonce) ?? 0n))
      highest.set(one.nonce, one.amount);
  return sumAmounts([...highest.values()].map((amount) => ({ amount })));
}

const sumAmounts = (all: readonly { amount: bigint }[]): bigint => all.reduce((sum, { amount }) => sum + amount, 0n);
