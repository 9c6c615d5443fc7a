import { deleteFeePolicy, upsertFeePolicy } from "../../db/queries/fee-policies.ts";
import type { Db } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** The operator's fee on a payment: `basisPoints` in hundredths of a percent, `fixedMicros` in millionths of a unit of the asset. */
export type FeePolicy = { basisPoints: number; fixedMicros: bigint };
/** A fee in minor units of the asset; `fixed` is part of `total`. */
export type Fee = { total: bigint; fixed: bigint; basisPoints: number };

/** Decimals of a millionth. */
const MICROS = 6;

/** The policy of a merchant without a fee. */
export const noFee: FeePolicy = { basisPoints: 0, fixedMicros: 0n };

/**
 * Returns the fee of an amount (minor units). Rounds the percentage down and the fixed part up, to the minor unit. The
 * fee leaves the merchant at least one minor unit. Pure.
 */
export function calculateFee({ basisPoints, fixedMicros }: FeePolicy, amount: bigint, decimals: number): Fee {
  const percentage = (amount * BigInt(basisPoints)) / 10_000n;
  const scaled = fixedMicros * 10n ** BigInt(decimals);
  const fixed = (scaled + 10n ** BigInt(MICROS) - 1n) / 10n ** BigInt(MICROS);
  const most = amount > 0n ? amount - 1n : 0n;
  const total = percentage + fixed < most ? percentage + fixed : most;
  return { total, fixed: total - (percentage < total ? percentage : total), basisPoints };
}

type Owner = { accountId: string; merchantId: string | null };

/** Sets the fee of an account, or of one merchant instead, for options created from now on. */
export async function setFee(
  { db, now }: Pick<PaymentDeps, "now"> & { db: Db },
  args: Owner & FeePolicy,
): Promise<void> {
  await upsertFeePolicy(db, {
    account_id: args.accountId,
    merchant_id: args.merchantId,
    basis_points: args.basisPoints,
    fixed_micros: args.fixedMicros,
    updated_at: now(),
  });
}

/**
 * Deletes a fee policy. Without its own policy a merchant has its account's; without a policy an account pays no fee.
 * Returns false when there was none.
 */
export async function clearFee({ db }: { db: Db }, owner: Owner): Promise<boolean> {
  return deleteFeePolicy(db, owner);
}
