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
  isNewMerchant: boolean;
};

/** Returns the limit that a payout exceeds. Signing a recorded payout again exceeds none. */
export function findLimitRefusal(limits: AssetLimits, of: LimitedAmounts): RefusalReason | undefined {
  if (of.increase === 0n) return undefined;
  if (of.amount > limits.perPayout) return "limit_payout";
  const perDay = of.isNewMerchant ? limits.newMerchantPerDay : limits.perMerchantDay;
  if (of.merchantDay !== undefined && of.merchantDay + of.increase > perDay) return "limit_merchant_day";
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

/** Returns why a refund of a payment is refused: it goes only to an account that has paid, and returns no more than was paid. */
export function findRefundRefusal(of: {
  receiver: string;
  deposits: readonly PaymentDeposit[];
  /** What was counted for refunds of the payment in the asset, minor units. */
  refunded: bigint;
  increase: bigint;
}): "receiver_not_payer" | "funds_short" | undefined {
  const paid = of.deposits.reduce((sum, { amount }) => sum + amount, 0n);
  if (paid < of.refunded + of.increase) return "funds_short";
  return of.deposits.some(({ payer }) => payer === of.receiver) ? undefined : "receiver_not_payer";
}
